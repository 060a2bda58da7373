//! `derive(Job)`: a struct or enum → its `Job` impl.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, LitStr, Path, Result, ext::IdentExt};

use crate::{
    attr::{self, Key},
    retry::Retry,
};

/// Reads `#[job(...)]`, checks it and writes the impl.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    check_type(input)?;
    let mut keys = Keys::default();
    attr::each_key(&input.attrs, "job", |key| keys.read(key))?;
    keys.check_aliases()?;
    keys.code(input)
}

#[derive(Default)]
struct Keys {
    queue: Option<Path>,
    name: Option<LitStr>,
    aliases: Vec<LitStr>,
    retry: Option<Retry>,
    library: Option<Path>,
}

impl Keys {
    fn read(&mut self, key: &Key) -> Result<()> {
        match key.name.as_str() {
            "queue" => self.queue = Some(queue(key)?),
            "name" => self.name = Some(key.text()?),
            "aliases" => self.aliases = key.texts()?,
            "retry" => self.retry = Some(Retry::read(key)?),
            "crate" => self.library = Some(key.quoted_path()?),
            _ => return Err(key.unknown(&["queue", "name", "aliases", "retry", "crate"])),
        }
        Ok(())
    }

    fn check_aliases(&self) -> Result<()> {
        let mut taken: Vec<_> = self.name.iter().map(LitStr::value).collect();
        for alias in &self.aliases {
            let name = alias.value();
            if taken.contains(&name) {
                return Err(Error::new(
                    alias.span(),
                    format!("the job already answers to `{name}`"),
                ));
            }
            taken.push(name);
        }
        Ok(())
    }
    fn code(&self, input: &DeriveInput) -> Result<TokenStream> {
        let ident = &input.ident;
        let Some(queue) = &self.queue else {
            let text = "a job needs a queue: `#[job(queue = Queue::Emails)]`";
            return Err(Error::new(ident.span(), text));
        };
        let library = attr::library(&self.library);
        let set = set_of(queue);
        let name = match &self.name {
            Some(name) => quote!(#name),
            None => {
                let ident = ident.unraw().to_string();
                quote!(::core::concat!(::core::module_path!(), "::", #ident))
            }
        };
        let str = quote!(&'static ::core::primitive::str);
        let aliases = (!self.aliases.is_empty()).then(|| {
            let aliases = &self.aliases;
            quote!(const ALIASES: &'static [#str] = &[#(#aliases),*];)
        });
        let retry = self.retry.as_ref().map(|retry| {
            let policy = retry.code(&library);
            quote! {
                fn retry_policy() -> ::core::option::Option<#library::RetryPolicy> {
                    ::core::option::Option::Some(#policy)
                }
            }
        });
        Ok(quote! {
            #[automatically_derived]
            #[allow(clippy::approx_constant)]
            impl #library::Job for #ident {
                type Queue = #set;
                const NAME: #str = #name;
                const QUEUE: #set = #queue;
                #aliases
                #retry
            }
        })
    }
}

fn queue(key: &Key) -> Result<Path> {
    let path = key.path()?;
    if path.segments.len() < 2 {
        let text = "`queue` must name the set and the variant, such as `Queue::Emails`";
        return Err(Error::new_spanned(path, text));
    }
    Ok(path)
}

/// The path without its last segment.
fn set_of(queue: &Path) -> TokenStream {
    let (start, segments) = (&queue.leading_colon, &queue.segments);
    let set = segments.iter().take(segments.len() - 1);
    quote!(#start #(#set)::*)
}

fn check_type(input: &DeriveInput) -> Result<()> {
    attr::refuse_generics(input, "a job")?;
    let place = "the job itself";
    let mut fields = Vec::new();
    match &input.data {
        Data::Struct(data) => fields.push(&data.fields),
        Data::Enum(data) => {
            for variant in &data.variants {
                attr::misplaced(&variant.attrs, "job", place)?;
                fields.push(&variant.fields);
            }
        }
        Data::Union(data) => {
            let text = "a job is a struct or an enum";
            return Err(Error::new(data.union_token.span, text));
        }
    }
    fields
        .into_iter()
        .flatten()
        .try_for_each(|field| attr::misplaced(&field.attrs, "job", place))
}
