//! `queuey run` as a service.

use std::{
    fs,
    os::linux::net::SocketAddrExt,
    os::unix::net::{SocketAddr, UnixDatagram},
    path::Path,
};

use queuey_rabbitmq::Uuid;
use rustix::process::Signal;

use crate::{
    relay::Relay,
    runner::{Folder, Runner, enqueue, until},
    support::Broker,
    tool::{declared, text},
};

pub async fn systemd_is_told(broker: Broker) {
    let folder = Folder::new();
    let path = folder.0.join("notify");
    let name = format!("queuey-test-{}", Uuid::new_v4().simple());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    for (socket, address) in [
        (UnixDatagram::bind(&path).unwrap(), text_of(&path)),
        (
            UnixDatagram::bind_addr(&address).unwrap(),
            format!("@{name}"),
        ),
    ] {
        let queue = declared(&broker).await;
        socket.set_nonblocking(true).unwrap();
        let environment = [
            ("NOTIFY_SOCKET", address.as_str()),
            ("WATCHDOG_USEC", "400000"),
        ];
        let script = "env >env; exit 0";
        let (mut runner, of_job) = Runner::start_with(&broker, &queue, &[], script, &environment);
        let mut told = String::new();
        until("the watchdog", async || {
            hear(&socket, &mut told);
            told.matches("WATCHDOG=1\n").count() >= 3
        })
        .await;
        enqueue(&broker, &queue, "a", "1").await;
        until("the status", async || {
            hear(&socket, &mut told);
            told.contains(": 1 done, ")
        })
        .await;
        runner.signal(Signal::TERM);
        runner.ended().await;
        hear(&socket, &mut told);

        assert!(told.starts_with("READY=1\nSTATUS="), "{told}");
        assert_eq!(told.matches("STOPPING=1\n").count(), 1, "{told}");
        assert!(!of_job.read("env").contains("NOTIFY_SOCKET"));
    }
}

pub async fn the_watchdog_starves_while_the_broker_is_away(broker: Broker) {
    let queue = declared(&broker).await;
    let relay = Relay::to(&broker.url);
    let name = format!("queuey-test-{}", Uuid::new_v4().simple());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let environment = [
        ("AMQP_URL", relay.url.as_str()),
        ("NOTIFY_SOCKET", &format!("@{name}")),
        ("WATCHDOG_USEC", "200000"),
    ];
    let (runner, _folder) = Runner::start_with(&broker, &queue, &[], "exit 0", &environment);
    let mut told = String::new();
    let mut heard = async |what: &str, times: usize| {
        told.clear();
        until(what, async || {
            hear(&socket, &mut told);
            told.matches(what).count() >= times
        })
        .await;
        told.clone()
    };

    heard("WATCHDOG=1", 1).await;
    relay.refuse(true);
    relay.cut();
    heard("the broker is away", 1).await;
    let outage = heard("the broker is away", 3).await;
    relay.refuse(false);
    heard("WATCHDOG=1", 2).await;
    runner.stop().await;

    assert!(!outage.contains("WATCHDOG=1"), "{outage}");
}

pub async fn no_program_is_left_a_zombie(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "echo x >>log; [ $QUEUEY_JOB_TYPE != slow ] || sleep 1000";
    let options = [
        "--concurrency",
        "4",
        "--timeout",
        "1s",
        "--max-attempts",
        "1",
    ];
    let (runner, folder) = Runner::start(&broker, &queue, &options, script);
    for job_type in ["quick", "slow"].repeat(4) {
        enqueue(&broker, &queue, job_type, "1").await;
    }

    until("all", async || folder.read("log").lines().count() == 8).await;

    let parent = runner.child.id().to_string();
    until("no children", async || {
        let processes = fs::read_dir("/proc").unwrap();
        let stat = |it: fs::DirEntry| fs::read_to_string(it.path().join("stat")).ok();
        let stats = processes.filter_map(|it| stat(it.ok()?));
        // Number, name, state, parent.
        let of = |stat: String| {
            stat.rsplit(") ")
                .next()?
                .split(' ')
                .nth(1)
                .map(String::from)
        };
        !stats.filter_map(of).any(|of| of == parent)
    })
    .await;
    runner.stop().await;
}

/// What has come in at `socket`.
fn hear(socket: &UnixDatagram, told: &mut String) {
    let mut one = [0; 1024];
    while let Ok(size) = socket.recv(&mut one) {
        *told += &format!("{}\n", text(&one[..size]));
    }
}

fn text_of(path: &Path) -> String {
    path.to_str().unwrap().into()
}
