use futures_lite::{AsyncWriteExt, future};

use super::*;

/// Takes a few bytes at a time.
struct Narrow(Vec<u8>, usize);

impl AsyncWrite for Narrow {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = bytes.len().min(self.1);
        self.0.extend_from_slice(&bytes[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Narrow {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Pending
    }
}

fn uri(mechanism: SASLMechanism) -> AMQPUri {
    let mut uri = AMQPUri::default();
    uri.authority.userinfo.username = "me".into();
    uri.authority.userinfo.password = "häsh".into();
    uri.query.auth_mechanism = Some(mechanism);
    uri
}

/// What arrives of `writes`, so many bytes at a time.
fn sent(width: usize, writes: &[&[u8]]) -> Vec<u8> {
    let login = Login::hide(&mut uri(SASLMechanism::Plain));
    let mut wire = Wire::new(Narrow(Vec::new(), width), login, Arc::default(), None);
    for bytes in writes {
        future::block_on(wire.write_all(bytes)).unwrap();
    }
    wire.stream.0
}

#[test]
fn the_password_is_out_of_the_uri() {
    for mechanism in [SASLMechanism::Plain, SASLMechanism::AMQPlain] {
        let mut uri = uri(mechanism);

        assert!(Login::hide(&mut uri).is_some());

        assert_eq!(uri.authority.userinfo.password, "*****");
    }
}

#[test]
fn a_certificate_has_no_password_to_hide() {
    let mut external = uri(SASLMechanism::External);

    assert!(Login::hide(&mut external).is_none());

    assert_eq!(external, uri(SASLMechanism::External));
}

#[test]
fn the_password_is_sent_whatever_fits_at_a_time() {
    for width in 1..40 {
        let sent = sent(
            width,
            &[
                b"AMQP\0\0\x09\x01",
                b"\x01\0\0 start-ok \0me\0***** en_US",
                b"\x01\0\0 tune-ok \0me\0*****",
            ],
        );

        let expected = "AMQP\0\0\x09\x01\x01\0\0 start-ok \0me\0häsh en_US\
                        \x01\0\0 tune-ok \0me\0*****";
        assert_eq!(String::from_utf8(sent).unwrap(), expected, "{width}");
    }
}

#[test]
fn a_login_of_another_kind_is_left_alone() {
    let frame = b"\x01\0\0 start-ok \0\0token en_US";

    assert_eq!(sent(64, &[b"AMQP\0\0\x09\x01", frame])[8..], frame[..]);
}
