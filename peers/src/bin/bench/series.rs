//! [`Bench`]: runs cases round by round and keeps what they measured.

use peers::bench::{Failure, Figures};

use crate::{broker::Broker, program::Program, report::count};

/// What is measured: a program and what it is told. Cases of one series are compared.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) series: String,
    pub(crate) program: Program,
    scenario: &'static str,
    settings: Vec<(&'static str, u64)>,
    jobs: u64,
    fill: bool,
    priorities: u8,
    /// Enqueued before the clock starts.
    warm_up: u64,
}

impl Case {
    pub(crate) fn new(series: impl Into<String>, program: Program, scenario: &'static str) -> Self {
        Self {
            series: series.into(),
            program,
            scenario,
            settings: Vec::new(),
            jobs: 0,
            fill: false,
            priorities: 10,
            warm_up: 0,
        }
    }

    /// So many tasks put so many jobs on the queue.
    pub(crate) fn enqueues(self, tasks: u64, jobs: u64) -> Self {
        Self {
            jobs,
            warm_up: tasks,
            ..self
        }
        .set("tasks", tasks)
    }

    /// So many jobs are put on the queue, to be taken by a worker.
    pub(crate) fn works(self, jobs: u64, prefetch: u64, priorities: u8) -> Self {
        Self {
            jobs,
            fill: true,
            priorities,
            ..self
        }
        .set("prefetch", prefetch)
    }

    pub(crate) fn set(mut self, key: &'static str, value: u64) -> Self {
        self.settings.push((key, value));
        self
    }

    pub(crate) fn warm_up(self, jobs: u64) -> Self {
        Self {
            warm_up: jobs,
            ..self
        }
    }

    fn settings(&self, queue: &str) -> Vec<String> {
        let mut settings = vec![
            format!("queue={queue}"),
            format!("jobs={}", self.jobs),
            format!("priorities={}", self.priorities),
        ];
        let more = self.settings.iter();
        settings.extend(more.map(|(key, value)| format!("{key}={value}")));
        settings
    }
}

/// One measurement.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) series: String,
    pub(crate) program: Program,
    pub(crate) figures: Figures,
}

/// Which samples: those of a series and a program.
pub(crate) type Of<'a> = (&'a str, Program);

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whether everything runs; the figures mean nothing.
    Smoke,
    Short,
    Long,
}

pub(crate) struct Bench {
    pub(crate) broker: Broker,
    pub(crate) form: Form,
    pub(crate) rounds: usize,
    pub(crate) samples: Vec<Sample>,
    /// What the tables have no column for.
    pub(crate) notes: Vec<String>,
}

impl Bench {
    pub(crate) fn new(form: Form) -> Result<Self, Failure> {
        Ok(Self {
            broker: Broker::connect()?,
            form,
            rounds: match form {
                Form::Smoke => 1,
                Form::Short => 3,
                Form::Long => 5,
            },
            samples: Vec::new(),
            notes: Vec::new(),
        })
    }

    pub(crate) fn is_long(&self) -> bool {
        self.form == Form::Long
    }

    /// How many jobs, or seconds, in each form.
    pub(crate) fn pick(&self, short: u64, long: u64) -> u64 {
        match self.form {
            Form::Smoke => short.div_ceil(20),
            Form::Short => short,
            Form::Long => long,
        }
    }

    /// All cases, then all of them again, as often as there are rounds.
    pub(crate) fn rounds(&mut self, cases: &[Case]) -> Result<(), Failure> {
        for round in 1..=self.rounds {
            for case in cases {
                let figures = self.run(case)?;
                let rate = count(figures.jobs as f64 / figures.seconds);
                let cpu = figures.cpu_us / figures.jobs as f64;
                let (series, program) = (&case.series, case.program);
                eprintln!("round {round}  {series:40} {program:6} {rate:>9}/s {cpu:7.1} µs CPU");
                self.keep(case, figures);
            }
        }
        Ok(())
    }

    pub(crate) fn keep(&mut self, case: &Case, figures: Figures) {
        self.samples.push(Sample {
            series: case.series.clone(),
            program: case.program,
            figures,
        });
    }

    /// One case, once, on a queue of its own.
    pub(crate) fn run(&self, case: &Case) -> Result<Figures, Failure> {
        let queue = self.broker.queue();
        if case.fill {
            self.broker.fill(&queue, case.jobs, case.priorities)?;
        }
        let figures = self.run_on(case, &queue, &self.broker.url);
        self.broker.delete(&queue)?;
        figures
    }

    /// One case on this queue; checks what lies on it then, and leaves it.
    pub(crate) fn run_on(&self, case: &Case, queue: &str, url: &str) -> Result<Figures, Failure> {
        let settings = case.settings(queue);
        let figures = case.program.run(url, case.scenario, &settings)?;
        let left = if case.warm_up > 0 {
            case.jobs + case.warm_up
        } else {
            0
        };
        self.broker.expect(queue, left)?;
        Ok(figures)
    }

    /// What `what` was in each round.
    pub(crate) fn all(&self, of: Of<'_>, what: fn(&Figures) -> f64) -> Vec<f64> {
        let (series, program) = of;
        self.samples
            .iter()
            .filter(|sample| sample.series == series && sample.program == program)
            .map(|sample| what(&sample.figures))
            .collect()
    }

    pub(crate) fn median(&self, of: Of<'_>, what: fn(&Figures) -> f64) -> f64 {
        median(self.all(of, what))
    }

    /// The median of the ratios of each round: what slows a round slows both.
    pub(crate) fn ratio(&self, of: Of<'_>, to: Of<'_>, what: fn(&Figures) -> f64) -> f64 {
        let (of, to) = (self.all(of, what), self.all(to, what));
        median(of.iter().zip(to).map(|(of, to)| of / to).collect())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().saturating_sub(1) / 2, values.len() / 2);
    match (values.get(low), values.get(high)) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        _ => f64::NAN,
    }
}

pub(crate) fn rate(figures: &Figures) -> f64 {
    figures.jobs as f64 / figures.seconds
}

pub(crate) fn cpu(figures: &Figures) -> f64 {
    figures.cpu_us / figures.jobs as f64
}
