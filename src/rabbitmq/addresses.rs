//! [`Addresses`]: the nodes of a cluster.

use std::fmt;

use super::Address;
use crate::{Error, Result};

/// One [`Address`] or several, of which any will do. Names are resolved anew for each dial.
///
/// ```
/// # use queuey_rabbitmq::Addresses;
/// let nodes = Addresses::try_from(["amqp://rabbit-1/prod", "amqp://rabbit-2/prod"])?.shuffled();
/// # Ok::<_, queuey_rabbitmq::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Addresses {
    list: Vec<Address>,
    shuffled: bool,
}

impl Addresses {
    /// Tries them in a random order, a new one for each dial, so that a fleet spreads out.
    pub fn shuffled(mut self) -> Self {
        self.shuffled = true;
        self
    }

    /// In the order of one dial.
    pub(super) fn for_one_dial(&self) -> Vec<Address> {
        let mut list = self.list.clone();
        if self.shuffled {
            fastrand::shuffle(&mut list);
        }
        list
    }
}

impl From<Address> for Addresses {
    fn from(address: Address) -> Self {
        Self {
            list: vec![address],
            shuffled: false,
        }
    }
}

impl TryFrom<Vec<Address>> for Addresses {
    type Error = Error;

    fn try_from(list: Vec<Address>) -> Result<Self> {
        if list.is_empty() {
            return Err(Error::Address("the list of addresses is empty".into()));
        }
        Ok(Self {
            list,
            shuffled: false,
        })
    }
}

impl<T: AsRef<str>, const N: usize> TryFrom<[T; N]> for Addresses {
    type Error = Error;

    fn try_from(uris: [T; N]) -> Result<Self> {
        Self::try_from(&uris[..])
    }
}

impl<T: AsRef<str>> TryFrom<&[T]> for Addresses {
    type Error = Error;

    fn try_from(uris: &[T]) -> Result<Self> {
        let parsed = uris.iter().map(|uri| uri.as_ref().parse());
        Self::try_from(parsed.collect::<Result<Vec<Address>>>()?)
    }
}

macro_rules! one_uri {
    ($($text:ty),+) => {$(
        impl TryFrom<$text> for Addresses {
            type Error = Error;

            fn try_from(uri: $text) -> Result<Self> {
                Ok(Address::try_from(uri)?.into())
            }
        }
    )+};
}

one_uri!(&str, String, &String);

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, address) in self.list.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{address}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Addresses({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_at_least_one_address_and_only_good_ones() {
        let none = Addresses::try_from(Vec::new()).unwrap_err().to_string();
        let bad = Addresses::try_from(["amqp://a", "http://b"]).unwrap_err();

        assert!(none.contains("empty"), "{none}");
        assert!(bad.to_string().contains("scheme"), "{bad}");
    }

    #[test]
    fn the_order_is_kept_unless_shuffled_is_asked_for() {
        let uris: Vec<_> = (0..20).map(|node| format!("amqp://node-{node}")).collect();
        let addresses = Addresses::try_from(&uris[..]).unwrap();

        assert_eq!(addresses.for_one_dial(), addresses.for_one_dial());
        let shuffled = addresses.shuffled();
        assert_ne!(shuffled.for_one_dial(), shuffled.for_one_dial());
    }
}
