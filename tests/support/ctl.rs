//! [`Broker`] as its operator runs it, with `rabbitmqctl`.

use std::process::Command;

use queuey_rabbitmq::Uuid;
use url::Url;

use super::Broker;

impl Broker {
    /// What `rabbitmqctl` answers.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let program = std::env::var("RABBITMQCTL").expect("run by tests/with-broker");
        let output = Command::new(program)
            .arg("--silent")
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "rabbitmqctl {arguments:?}: {output:?}"
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// A vhost of the test's own where a queue without a type is a quorum queue.
    pub async fn quorum_vhost(&self) -> Self {
        self.vhost(&["--default-queue-type", "quorum"]).await
    }

    /// A vhost of the test's own, made with these options.
    pub async fn vhost(&self, options: &[&str]) -> Self {
        let name = format!("test.{}", Uuid::new_v4().simple());
        let mut url = Url::parse(&self.url).unwrap();
        let user = match url.username() {
            "" => "guest".to_owned(),
            user => user.to_owned(),
        };
        self.ctl(&[&["add_vhost", &name], options].concat());
        self.ctl_later(&["delete_vhost", &name]);
        self.ctl(&["set_permissions", "--vhost", &name, &user, ".*", ".*", ".*"]);
        url.set_path(&name);
        Self::connect(url.into(), self.runtime.clone()).await
    }

    /// Applies `definition` to `queue`, declared or not yet, until the test ends.
    pub fn policy(&self, queue: &str, definition: &str) {
        let pattern = format!("^{}$", queue.replace('.', "[.]"));
        self.ctl(&[
            "set_policy",
            "--apply-to",
            "queues",
            queue,
            &pattern,
            definition,
        ]);
        self.ctl_later(&["clear_policy", queue]);
    }

    /// The connections whose clients gave them this name.
    pub fn connections(&self, name: &str) -> Vec<String> {
        self.ctl(&["list_connections", "pid", "client_properties"])
            .lines()
            .filter(|line| line.contains(name))
            .map(|line| line.split('\t').next().unwrap().to_owned())
            .collect()
    }

    /// Closes the connections of this name, as an operator may at any time.
    pub fn close_connections(&self, name: &str) {
        for pid in self.connections(name) {
            self.ctl(&["close_connection", &pid, "closed by a test"]);
        }
    }

    /// What `rabbitmqctl list_queues` shows of `queue`.
    pub fn listed(&self, queue: &str, columns: &[&str]) -> Option<Vec<String>> {
        let arguments = [&["list_queues", "name"], columns].concat();
        let lines = self.ctl(&arguments);
        let line = lines
            .lines()
            .find_map(|line| line.strip_prefix(queue)?.strip_prefix('\t'))?;
        Some(line.split('\t').map(str::to_owned).collect())
    }
}
