//! In what a queue differs from what the application declares, over AMQP.

use queuey_rabbitmq::{
    Error, Result,
    admin::{Admin, Difference},
    topology::Declaration,
};

use super::finding::Report;

/// Whether there is such a queue; that it differs is told.
pub(super) async fn check(admin: &Admin, ours: &Declaration, report: &mut Report) -> Result<bool> {
    let differences = match admin.differences(ours).await {
        Ok(Some(differences)) => differences,
        Ok(None) => return Ok(false),
        // Told with the rights.
        Err(Error::AccessRefused { .. }) => return Ok(true),
        Err(error) => return Err(error),
    };
    // The rest follows from it.
    let kind = differences.iter().find(|it| it.argument == "x-queue-type");
    for Difference {
        argument, words, ..
    } in kind.map_or(&differences[..], std::slice::from_ref)
    {
        let (check, advice) = match &**argument {
            "x-queue-type" => (
                "kind",
                "name the kind that the application declares (--quorum or not); if that is the \
                 other one, drain and delete the queue, or change `kind`",
            ),
            "x-max-priority" => (
                "arguments",
                "configure `max_priority` to what the queue has (then see --max-priority), or \
                 drain and delete it",
            ),
            _ => (
                "arguments",
                "configure the queue in the application to match, or drain and delete it",
            ),
        };
        let problem = format!("workers and producers fail to declare it: {words}");
        report.error(check, &ours.name, &problem, advice);
    }
    Ok(true)
}
