//! A consumer that acks many deliveries with one frame.

use futures_util::{FutureExt, StreamExt};
use lapin::{
    Consumer,
    options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions},
    types::FieldTable,
};
use peers::bench::{Drain, Failure, Figures, Request, wire};

/// Deliveries one ack covers at most.
const MERGED: u64 = 50;

/// As many deliveries as lie on the queue; acked when so many have come, or no other is at hand.
pub(crate) async fn drain(request: &Request) -> Result<Figures, Failure> {
    let connection = wire::connect(&request.url).await?;
    let (mut consumer, channel) = consume(&connection, request).await?;
    let drain = Drain::of(request.jobs());
    let (mut seen, mut acked) = (0, 0);
    let mut at_hand = None;
    while seen < request.jobs() {
        let delivery = match at_hand.take() {
            Some(delivery) => delivery,
            None => consumer.next().await.ok_or("the consumer ended")??,
        };
        drain.starts();
        seen += 1;
        at_hand = match consumer.next().now_or_never() {
            Some(next) => Some(next.ok_or("the consumer ended")??),
            None => None,
        };
        let merged = MERGED.min((u64::from(request.prefetch()) / 2).max(1));
        if at_hand.is_none() || seen - acked >= merged {
            delivery.ack(BasicAckOptions { multiple: true }).await?;
            acked = seen;
        }
    }
    let figures = drain.figures();
    connection.close(200, "done".into()).await?;
    drop((consumer, channel));
    figures
}

/// A consumer on a channel of its own. Both must outlive the close of the connection: beside a
/// channel that closes at the same time, it fails or hangs.
pub(crate) async fn consume(
    connection: &lapin::Connection,
    request: &Request,
) -> Result<(Consumer, lapin::Channel), Failure> {
    let channel = connection.create_channel().await?;
    let prefetch = request.prefetch();
    channel
        .basic_qos(prefetch, BasicQosOptions::default())
        .await?;
    let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
    let consumer = channel
        .basic_consume(request.queue().into(), "".into(), options, arguments)
        .await?;
    Ok((consumer, channel))
}
