//! Pure: what a broker of a certain version can do.

use crate::{Error, Result};

/// Refuses quorum queues on brokers that would drop a job, whatever we declare: before 4.0 the
/// delivery limit cannot be switched off.
pub(super) fn check_quorum(queue: &str, version: Option<&str>) -> Result<()> {
    match version {
        Some(version) if is_before(version, (4, 0)) => {
            let why = format!("a quorum queue needs RabbitMQ 4.0 or later, this is {version}");
            Err(Error::broker("declare", queue, why))
        }
        _ => Ok(()),
    }
}

/// Whether a quorum queue lets a job expire while another of a higher priority waits on.
pub(super) fn expires_by_priority(version: Option<&str>) -> bool {
    is_4_3(version)
}

/// Whether a quorum queue counts what it got back without an answer, and not what was given back.
pub(super) fn counts_losses_alone(version: Option<&str>) -> bool {
    is_4_3(version)
}

fn is_4_3(version: Option<&str>) -> bool {
    version.is_none_or(|version| !is_before(version, (4, 3)))
}

pub(super) fn is_before(version: &str, other: (u32, u32)) -> bool {
    let mut numbers = version.split('.').map_while(|part| part.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), minor) => (major, minor.unwrap_or(0)) < other,
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, quorum, priorities) in [
            (Some("3.10.8"), false, false),
            (Some("4.0.5"), true, false),
            (Some("4.2.0-rc.1"), true, false),
            (Some("4.3.6"), true, true),
            (Some("4.10.0"), true, true),
            (Some("5"), true, true),
            (Some("unknown"), true, true),
            (None, true, true),
        ] {
            assert_eq!(check_quorum("q", version).is_ok(), quorum, "{version:?}");
            assert_eq!(expires_by_priority(version), priorities, "{version:?}");
            assert_eq!(counts_losses_alone(version), priorities, "{version:?}");
        }
    }
}
