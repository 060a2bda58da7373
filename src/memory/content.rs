//! [`Content`]: what is stored of a job.

use std::sync::Arc;

use crate::{Envelope, Failure};

/// A body, which need not be an envelope, and what is known of the job's failure.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) body: Vec<u8>,
    failure: Option<Arc<Failure>>,
    crashes: u32,
}

impl Content {
    pub(super) fn envelope(&self) -> serde_json::Result<Envelope> {
        let mut envelope = Envelope::from_bytes(&self.body)?;
        envelope.failure.clone_from(&self.failure);
        envelope.crashes = self.crashes;
        Ok(envelope)
    }
}

impl From<&Envelope> for Content {
    fn from(envelope: &Envelope) -> Self {
        Self {
            body: envelope.to_bytes(),
            failure: envelope.failure.clone(),
            crashes: envelope.crashes,
        }
    }
}

impl From<Vec<u8>> for Content {
    fn from(body: Vec<u8>) -> Self {
        Self {
            body,
            failure: None,
            crashes: 0,
        }
    }
}
