//! [`Retry`]: the `retry(...)` of a queue or a job.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, Result};

use crate::attr::{Key, Spanned};

/// A checked retry policy.
pub(crate) struct Retry {
    max_attempts: u32,
    backoff: Backoff,
}

enum Backoff {
    None,
    Fixed(Duration),
    Exponential {
        base: Duration,
        factor: f64,
        max: Duration,
        jitter: bool,
    },
}

/// The keys as written; which of them go together shows once all are read.
#[derive(Default)]
struct Written {
    keys: Vec<(String, Span)>,
    max_attempts: Option<u32>,
    backoff: Option<Spanned<&'static str>>,
    delay: Option<Duration>,
    base: Option<Spanned<Duration>>,
    factor: Option<f64>,
    max: Option<Spanned<Duration>>,
    jitter: Option<bool>,
}

impl Retry {
    /// Reads and checks `retry(...)`.
    pub(crate) fn read(key: &Key) -> Result<Self> {
        let mut written = Written::default();
        key.nested(|key| written.read(key))?;
        Ok(Self {
            max_attempts: written.max_attempts.unwrap_or(3),
            backoff: written.backoff()?,
        })
    }

    /// The `RetryPolicy` expression.
    pub(crate) fn code(&self, library: &TokenStream) -> TokenStream {
        let max_attempts = self.max_attempts;
        let backoff = match self.backoff {
            Backoff::None => quote!(None),
            Backoff::Fixed(delay) => {
                let delay = duration(delay);
                quote!(Fixed(#delay))
            }
            Backoff::Exponential {
                base,
                factor,
                max,
                jitter,
            } => {
                let (base, max) = (duration(base), duration(max));
                quote!(exponential_with(#base, #factor, #max, #jitter))
            }
        };
        quote!(#library::RetryPolicy::new(#max_attempts, #library::Backoff::#backoff))
    }
}

impl Written {
    fn read(&mut self, key: &Key) -> Result<()> {
        match key.name.as_str() {
            "max_attempts" => {
                let max = key.integer(1..=u32::MAX, ": the first attempt counts")?;
                self.max_attempts = Some(max.value);
            }
            "backoff" => self.backoff = Some(key.word(&["none", "fixed", "exponential"])?),
            "delay" => {
                let delay = key.duration("; for no delay write `backoff = \"none\"`")?;
                self.delay = Some(delay.value);
            }
            "base" => self.base = Some(key.duration("")?),
            "factor" => self.factor = Some(key.positive()?),
            "max" => self.max = Some(key.duration("")?),
            "jitter" => self.jitter = Some(key.flag()?.value),
            _ => {
                return Err(key.unknown(&[
                    "max_attempts",
                    "backoff",
                    "delay",
                    "base",
                    "factor",
                    "max",
                    "jitter",
                ]));
            }
        }
        self.keys.push((key.name.clone(), key.span));
        Ok(())
    }

    fn backoff(&self) -> Result<Backoff> {
        let kind = self
            .backoff
            .as_ref()
            .map_or("exponential", |backoff| backoff.value);
        self.refuse_keys_of_others(kind)?;
        match (kind, &self.backoff, self.delay) {
            ("none", ..) => Ok(Backoff::None),
            ("fixed", _, Some(delay)) => Ok(Backoff::Fixed(delay)),
            ("fixed", Some(backoff), None) => Err(Error::new(
                backoff.span,
                "`backoff = \"fixed\"` needs a `delay`, such as `delay = \"30s\"`",
            )),
            _ => self.exponential(),
        }
    }

    fn refuse_keys_of_others(&self, kind: &str) -> Result<()> {
        for (key, span) in &self.keys {
            let owner = match key.as_str() {
                "delay" => "fixed",
                "base" | "factor" | "max" | "jitter" => "exponential",
                _ => continue,
            };
            if owner != kind {
                let text = format!("`{key}` goes with `backoff = \"{owner}\"`, this is \"{kind}\"");
                return Err(Error::new(*span, text));
            }
        }
        Ok(())
    }

    fn exponential(&self) -> Result<Backoff> {
        let written = |duration: &Option<Spanned<Duration>>| duration.as_ref().map(|d| d.value);
        let base = written(&self.base).unwrap_or(Duration::from_secs(1));
        let max = written(&self.max).unwrap_or(Duration::from_secs(300));
        if let Some(culprit) = self.base.as_ref().or(self.max.as_ref())
            && base > max
        {
            return Err(Error::new(
                culprit.span,
                format!("`base` ({base:?}) must not exceed `max` ({max:?}); by default 1s and 5m"),
            ));
        }
        Ok(Backoff::Exponential {
            base,
            factor: self.factor.unwrap_or(2.0),
            max,
            jitter: self.jitter.unwrap_or(true),
        })
    }
}

/// The `Duration` expression.
pub(crate) fn duration(duration: Duration) -> TokenStream {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    quote!(::core::time::Duration::new(#seconds, #nanos))
}
