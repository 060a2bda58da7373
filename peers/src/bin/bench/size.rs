//! Goals 13 and 14: the smallest worker, and what it depends on.

use std::{collections::BTreeSet, env, fs, path::Path, process::Command};

use peers::bench::Failure;

use crate::{
    goal::{AtMost, Goal, Unit},
    series::Bench,
};

const RELEASE: &str = "smallest worker, release, stripped";
const SMALL: &str = "smallest worker, opt-level z, LTO, abort";
const TLS: &str = "smallest worker with TLS, release, stripped";

/// The profile `stripped`, which only this program needs; `small` is the workspace's.
const STRIPPED: [&str; 2] = [
    "profile.stripped.inherits=\"release\"",
    "profile.stripped.strip=true",
];

pub(crate) fn measure(bench: &mut Bench) -> Result<Vec<Goal>, Failure> {
    let [release, small, tls] = if !bench.is_long() {
        [None; 3]
    } else {
        let mut size = |program: &str, profile, tls: &str| weigh(bench, program, profile, tls);
        let release = size("ours", "stripped", "")?;
        let small = size("ours", "small", "")?;
        size("queuey", "stripped", "")?;
        size("queuey", "small", "")?;
        let tls = size("ours", "stripped", "-tls")? / size("queuey", "stripped", "-tls")?;
        [Some(release), Some(small), Some(tls)]
    };
    let size =
        |what, limit, unit, figure| Goal::in_long_form(13, what, AtMost(limit), unit, figure);
    Ok(vec![
        size(RELEASE, 3.2, Unit::Megabytes, release),
        size(SMALL, 1.39, Unit::Megabytes, small),
        size(TLS, 0.8, Unit::OfQueuey, tls),
        more_crates(bench)?,
    ])
}

/// The size of a smallest worker in megabytes.
fn weigh(bench: &mut Bench, program: &str, profile: &str, tls: &str) -> Result<f64, Failure> {
    let name = format!("smallest-{program}");
    let feature = format!("{name}{tls}");
    let mut cargo = Command::new("cargo");
    cargo.args([
        "build",
        "--quiet",
        "--package",
        "peers",
        "--no-default-features",
    ]);
    cargo.args(["--features", &feature, "--bin", &name, "--profile", profile]);
    for setting in STRIPPED {
        cargo.args(["--config", setting]);
    }
    eprintln!("build    {feature}, profile {profile}");
    if !cargo.status()?.success() {
        return Err(format!("cannot build {feature}").into());
    }
    let target = env::var("CARGO_TARGET_DIR").unwrap_or("target".into());
    let built = Path::new(&target).join(profile).join(&name);
    let megabytes = fs::metadata(built)?.len() as f64 / 1e6;
    bench
        .notes
        .push(format!("{feature}, profile {profile}: {megabytes:.2} MB"));
    Ok(megabytes)
}

/// How many crates this library needs above those of lapin, both with async-global-executor.
fn more_crates(bench: &mut Bench) -> Result<Goal, Failure> {
    let ours = crates("queuey-rabbitmq@0.1.0", "async-global-executor")?;
    if ours.iter().any(|name| name.starts_with("tokio v")) {
        return Err("the default build depends on tokio".into());
    }
    let lapin = crates("peers", "lapin-alone")?.len();
    let queuey = crates("peers", "smallest-queuey")?.len();
    let ours = ours.len();
    bench.notes.push(format!(
        "crates without TLS: ours {ours}, queuey {queuey}, raw lapin {lapin}"
    ));
    let more = ours as f64 - lapin as f64;
    Ok(Goal::new(
        14,
        "crates without TLS, more than raw lapin",
        AtMost(12.0),
        Unit::Number,
        more,
    ))
}

fn crates(package: &str, features: &str) -> Result<BTreeSet<String>, Failure> {
    let tree = Command::new("cargo")
        .args(["tree", "--edges", "normal", "--prefix", "none"])
        .args(["--package", package, "--no-default-features"])
        .args(["--features", features])
        .output()?;
    if !tree.status.success() {
        let error = String::from_utf8_lossy(&tree.stderr).into_owned();
        return Err(format!("cargo tree: {error}").into());
    }
    let lines = String::from_utf8(tree.stdout)?;
    // What was shown before is marked; what depends on it all is the program's own package.
    let names = lines.lines().map(|line| line.trim_end_matches(" (*)"));
    let others = names.filter(|name| !name.is_empty() && !name.starts_with("peers v"));
    Ok(others.map(String::from).collect())
}
