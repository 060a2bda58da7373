//! `derive(Queues)`: an enum → its `QueueSet`.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, Ident, Result, Variant, ext::IdentExt};

use crate::{
    attr::{self, Spanned},
    retry::{self, Retry},
    snake_case::snake_case,
};

/// Reads the enum, checks it and writes its impl.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let variants = &fieldless_enum(input)?.variants;
    let set = Set::read(input)?;
    let queues = attr::all(
        variants
            .iter()
            .map(|variant| Queue::read(variant, set.prefix.as_deref())),
    )?;
    distinct(&queues)?;
    Ok(set.code(&input.ident, &queues))
}

/// What `#[queues(...)]` says.
struct Set {
    prefix: Option<String>,
    library: TokenStream,
}

/// A variant and what its `#[queue(...)]` says.
struct Queue<'a> {
    variant: &'a Ident,
    name: Spanned<String>,
    keys: Keys,
}

#[derive(Default)]
struct Keys {
    name: Option<Spanned<String>>,
    prefetch: Option<u16>,
    durable: Option<Spanned<bool>>,
    message_ttl: Option<Duration>,
    max_priority: Option<Spanned<u8>>,
    kind: Option<&'static str>,
    consumer_timeout: Option<Duration>,
    retry: Option<Retry>,
}

impl Set {
    fn read(input: &DeriveInput) -> Result<Self> {
        attr::misplaced(
            &input.attrs,
            "queue",
            "a variant; the enum takes `#[queues]`",
        )?;
        let (mut prefix, mut library) = (None, None);
        attr::each_key(&input.attrs, "queues", |key| {
            match key.name.as_str() {
                "prefix" => {
                    let text = key.text()?;
                    if text.value().ends_with('.') {
                        let error = "`prefix` must not end in a dot: one is put after it";
                        return Err(Error::new(text.span(), error));
                    }
                    prefix = Some(text.value());
                }
                "crate" => library = Some(key.quoted_path()?),
                _ => return Err(key.unknown(&["prefix", "crate"])),
            }
            Ok(())
        })?;
        let library = attr::library(&library);
        Ok(Self { prefix, library })
    }

    fn code(&self, set: &Ident, queues: &[Queue]) -> TokenStream {
        let library = &self.library;
        let variants: Vec<_> = queues.iter().map(|queue| queue.variant).collect();
        let names = queues.iter().map(|queue| &queue.name.value);
        let configs = queues.iter().map(|queue| queue.config(library));
        quote! {
            #[automatically_derived]
            #[allow(clippy::approx_constant)]
            impl #library::QueueSet for #set {
                fn all() -> &'static [Self] {
                    &[#(Self::#variants),*]
                }
                fn name(&self) -> &'static ::core::primitive::str {
                    match self {
                        #(Self::#variants => #names,)*
                    }
                }
                fn config(&self) -> #library::QueueConfig {
                    match self {
                        #(Self::#variants => #configs,)*
                    }
                }
            }
        }
    }
}

impl<'a> Queue<'a> {
    fn read(variant: &'a Variant, prefix: Option<&str>) -> Result<Self> {
        attr::misplaced(
            &variant.attrs,
            "queues",
            "the enum; a variant takes `#[queue]`",
        )?;
        let mut keys = Keys::default();
        attr::each_key(&variant.attrs, "queue", |key| keys.read(key))?;
        keys.check_quorum()?;

        let mut name = keys.name.take().unwrap_or_else(|| Spanned {
            value: snake_case(&variant.ident.unraw().to_string()),
            span: variant.ident.span(),
        });
        if let Some(prefix) = prefix {
            name.value = format!("{prefix}.{}", name.value);
        }
        let variant = &variant.ident;
        Ok(Self {
            variant,
            name,
            keys,
        })
    }

    /// The `QueueConfig` expression: the defaults, and a setter for each key written.
    fn config(&self, library: &TokenStream) -> TokenStream {
        let name = &self.name.value;
        let mut config = quote!(#library::QueueConfig::new(#name));
        let keys = &self.keys;
        if let Some(prefetch) = keys.prefetch {
            config.extend(quote!(.prefetch(#prefetch)));
        }
        if let Some(retry) = &keys.retry {
            let policy = retry.code(library);
            config.extend(quote!(.retry(#policy)));
        }
        if let Some(Spanned { value, .. }) = keys.durable {
            config.extend(quote!(.durable(#value)));
        }
        if let Some(ttl) = keys.message_ttl {
            let ttl = retry::duration(ttl);
            config.extend(quote!(.message_ttl(#ttl)));
        }
        if let Some(Spanned { value, .. }) = keys.max_priority {
            config.extend(quote!(.max_priority(#value)));
        }
        if let Some(kind) = keys.kind {
            let kind = match kind {
                "quorum" => quote!(Quorum),
                _ => quote!(Classic),
            };
            config.extend(quote!(.kind(#library::QueueKind::#kind)));
        }
        if let Some(timeout) = keys.consumer_timeout {
            let timeout = retry::duration(timeout);
            config.extend(quote!(.consumer_timeout(#timeout)));
        }
        config
    }
}

impl Keys {
    const ALL: [&str; 8] = [
        "name",
        "prefetch",
        "durable",
        "message_ttl",
        "max_priority",
        "kind",
        "consumer_timeout",
        "retry",
    ];

    fn read(&mut self, key: &attr::Key) -> Result<()> {
        match key.name.as_str() {
            "name" => {
                let text = key.text()?;
                let (value, span) = (text.value(), text.span());
                self.name = Some(Spanned { value, span });
            }
            "prefetch" => {
                let prefetch = key.integer(1..=u16::MAX, ": in AMQP, 0 means unlimited")?;
                self.prefetch = Some(prefetch.value);
            }
            "durable" => self.durable = Some(key.flag()?),
            "message_ttl" => self.message_ttl = Some(message_ttl(key)?),
            "max_priority" => self.max_priority = Some(key.integer(0..=u8::MAX, "")?),
            "kind" => self.kind = Some(key.word(&["classic", "quorum"])?.value),
            "consumer_timeout" => self.consumer_timeout = Some(consumer_timeout(key)?),
            "retry" => self.retry = Some(Retry::read(key)?),
            _ => return Err(key.unknown(&Self::ALL)),
        }
        Ok(())
    }

    /// What a quorum queue cannot be.
    fn check_quorum(&self) -> Result<()> {
        if self.kind != Some("quorum") {
            return Ok(());
        }
        match (&self.max_priority, &self.durable) {
            (Some(levels), _) if levels.value > 31 => Err(Error::new(
                levels.span,
                "a quorum queue has the priorities 0 to 31",
            )),
            (_, Some(durable)) if !durable.value => {
                Err(Error::new(durable.span, "a quorum queue is always durable"))
            }
            _ => Ok(()),
        }
    }
}

fn message_ttl(key: &attr::Key) -> Result<Duration> {
    let ttl = key.duration(": the broker would discard every job at once")?;
    if ttl.value > Duration::from_millis(u32::MAX.into()) {
        return Err(Error::new(
            ttl.span,
            "`message_ttl` must be at most 4294967295 ms, about 49 days",
        ));
    }
    Ok(ttl.value)
}

fn consumer_timeout(key: &attr::Key) -> Result<Duration> {
    let timeout = key.duration(": the broker would take every job back at once")?;
    Ok(timeout.value)
}

fn fieldless_enum(input: &DeriveInput) -> Result<&DataEnum> {
    let data = match &input.data {
        Data::Enum(data) => data,
        Data::Struct(data) => return Err(not_an_enum(data.struct_token.span)),
        Data::Union(data) => return Err(not_an_enum(data.union_token.span)),
    };
    attr::refuse_generics(input, "a queue set")?;
    if data.variants.is_empty() {
        let text = "a queue set needs at least one variant";
        return Err(Error::new(input.ident.span(), text));
    }
    attr::all(data.variants.iter().map(|variant| match &variant.fields {
        Fields::Unit => Ok(()),
        fields => Err(Error::new_spanned(fields, "a queue has no fields")),
    }))?;
    Ok(data)
}

fn not_an_enum(span: Span) -> Error {
    Error::new(span, "a queue set is an enum, one variant per queue")
}

/// Names both sides of each clash.
fn distinct(queues: &[Queue]) -> Result<()> {
    let same_name = |queue: &&Queue| {
        queues
            .iter()
            .find(|other| other.variant != queue.variant && other.name.value == queue.name.value)
    };
    attr::all(queues.iter().map(|queue| match same_name(&queue) {
        None => Ok(()),
        Some(other) => Err(Error::new(
            queue.name.span,
            format!(
                "`{}` is also the queue of `{}`",
                queue.name.value, other.variant
            ),
        )),
    }))?;
    Ok(())
}
