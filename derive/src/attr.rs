//! [`Key`]: one `key = value` of an attribute; an error points at the token that is wrong.

use std::{fmt::Display, ops::RangeInclusive, str::FromStr, time::Duration};

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{
    Attribute, DeriveInput, Error, Lit, LitStr, Meta, Path, Result, Token, bracketed,
    meta::{self, ParseNestedMeta},
    parenthesized,
    parse::{ParseStream, Parser},
    punctuated::Punctuated,
    token,
};

use crate::duration;

/// A key, with the parser in front of its value.
pub(crate) struct Key<'a> {
    pub(crate) name: String,
    pub(crate) span: Span,
    meta: ParseNestedMeta<'a>,
}

/// A value and where it is written.
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// Hands over each key of every `#[name(...)]`; the bare `#[name]` has none.
pub(crate) fn each_key(
    attrs: &[Attribute],
    name: &str,
    mut read: impl FnMut(&Key) -> Result<()>,
) -> Result<()> {
    let mut seen = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident(name)) {
        match &attr.meta {
            Meta::Path(_) => {}
            Meta::List(list) => {
                list.parse_nested_meta(|meta| read(&Key::new(meta, &mut seen)?))?;
            }
            Meta::NameValue(meta) => {
                let text = format!("write the keys in parentheses: `#[{name}(...)]`");
                return Err(Error::new_spanned(meta, text));
            }
        }
    }
    Ok(())
}

/// Refuses `#[name]` here and says where it belongs.
pub(crate) fn misplaced(attrs: &[Attribute], name: &str, place: &str) -> Result<()> {
    match attrs.iter().find(|attr| attr.path().is_ident(name)) {
        None => Ok(()),
        Some(attr) => Err(Error::new_spanned(
            attr.path(),
            format!("`#[{name}]` belongs on {place}"),
        )),
    }
}

/// Refuses type, lifetime and const parameters.
pub(crate) fn refuse_generics(input: &DeriveInput, what: &str) -> Result<()> {
    if input.generics.params.is_empty() {
        return Ok(());
    }
    let text = format!("{what} cannot be generic");
    Err(Error::new_spanned(&input.generics, text))
}

/// Where the generated code finds the library.
pub(crate) fn library(written: &Option<Path>) -> TokenStream {
    match written {
        Some(path) => quote!(#path),
        None => quote!(::queuey_rabbitmq),
    }
}

/// Every value, or every error, so that one build shows all mistakes.
pub(crate) fn all<T>(results: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let (mut values, mut errors) = (Vec::new(), None::<Error>);
    for result in results {
        match (result, &mut errors) {
            (Ok(value), _) => values.push(value),
            (Err(error), Some(errors)) => errors.combine(error),
            (Err(error), None) => errors = Some(error),
        }
    }
    errors.map_or(Ok(values), Err)
}

impl<'a> Key<'a> {
    fn new(meta: ParseNestedMeta<'a>, seen: &mut Vec<String>) -> Result<Self> {
        let ident = meta.path.require_ident()?;
        let (name, span) = (ident.to_string(), ident.span());
        if seen.contains(&name) {
            return Err(Error::new(span, format!("`{name}` is written twice")));
        }
        seen.push(name.clone());
        Ok(Self { name, span, meta })
    }

    /// What to say of a key that is none of these.
    pub(crate) fn unknown(&self, allowed: &[&str]) -> Error {
        let text = format!(
            "unknown key `{}`; allowed: `{}`",
            self.name,
            allowed.join("`, `")
        );
        Error::new(self.span, text)
    }

    /// `key(...)`
    pub(crate) fn nested(&self, mut read: impl FnMut(&Key) -> Result<()>) -> Result<()> {
        if !self.meta.input.peek(token::Paren) {
            return Err(self.takes("its keys in parentheses", self.span));
        }
        let inside;
        parenthesized!(inside in self.meta.input);
        let mut seen = Vec::new();
        // Unlike `ParseNestedMeta::parse_nested_meta`, this takes empty parentheses.
        meta::parser(|meta| read(&Key::new(meta, &mut seen)?)).parse2(inside.parse()?)
    }

    /// `key = "text"`, not blank.
    pub(crate) fn text(&self) -> Result<LitStr> {
        let text = self.literal("a string", |lit| match lit {
            Lit::Str(text) => Some(text),
            _ => None,
        })?;
        self.not_blank(&text)?;
        Ok(text)
    }

    /// `key = ["text", "text"]`, none blank.
    pub(crate) fn texts(&self) -> Result<Vec<LitStr>> {
        let takes = "a list of strings in brackets";
        let value = self.value(takes)?;
        if !value.peek(token::Bracket) {
            return Err(self.takes(takes, value.span()));
        }
        let list;
        bracketed!(list in value);
        let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?;
        texts.iter().try_for_each(|text| self.not_blank(text))?;
        Ok(texts.into_iter().collect())
    }

    /// `key = "word"`, one of these.
    pub(crate) fn word(&self, words: &[&'static str]) -> Result<Spanned<&'static str>> {
        let text = self.text()?;
        let span = text.span();
        match words.iter().find(|word| **word == text.value()) {
            Some(value) => Ok(Spanned { value, span }),
            None => {
                let text = format!("`{}` must be \"{}\"", self.name, words.join("\" or \""));
                Err(Error::new(span, text))
            }
        }
    }

    /// `key = true`
    pub(crate) fn flag(&self) -> Result<Spanned<bool>> {
        self.literal("`true` or `false`", |lit| match lit {
            Lit::Bool(flag) => {
                let (value, span) = (flag.value, flag.span);
                Some(Spanned { value, span })
            }
            _ => None,
        })
    }

    /// `key = 16`, in this range; `zero` explains why 0 is not.
    pub(crate) fn integer<T>(&self, range: RangeInclusive<T>, zero: &str) -> Result<Spanned<T>>
    where
        T: FromStr<Err: Display> + PartialOrd + Display,
    {
        let int = self.literal("a plain integer, such as 16", |lit| match lit {
            Lit::Int(int) if int.suffix().is_empty() => Some(int),
            _ => None,
        })?;
        let span = int.span();
        match int.base10_parse() {
            Ok(value) if range.contains(&value) => Ok(Spanned { value, span }),
            _ => {
                let (name, min, max) = (&self.name, range.start(), range.end());
                let why = if int.base10_digits() == "0" { zero } else { "" };
                let text = format!("`{name}` must be from {min} to {max}{why}");
                Err(Error::new(span, text))
            }
        }
    }

    /// `key = 2.0` or `key = 2`, finite and above zero.
    pub(crate) fn positive(&self) -> Result<f64> {
        let (number, span) = self.literal("a plain number, such as 2.0", |lit| match lit {
            Lit::Float(float) if float.suffix().is_empty() => {
                Some((float.base10_parse::<f64>().ok()?, float.span()))
            }
            Lit::Int(int) if int.suffix().is_empty() => {
                Some((int.base10_parse().ok()?, int.span()))
            }
            _ => None,
        })?;
        if number.is_finite() && number > 0.0 {
            return Ok(number);
        }
        let text = format!("`{}` must be finite and above zero", self.name);
        Err(Error::new(span, text))
    }

    /// `key = "5m"`; `zero` explains why not zero.
    pub(crate) fn duration(&self, zero: &str) -> Result<Spanned<Duration>> {
        let text = self.literal("a duration in quotes, such as \"30s\"", |lit| match lit {
            Lit::Str(text) => Some(text),
            _ => None,
        })?;
        let span = text.span();
        let value = duration::parse(&text.value()).map_err(|text| Error::new(span, text))?;
        if value.is_zero() {
            let text = format!("`{}` must not be zero{zero}", self.name);
            return Err(Error::new(span, text));
        }
        Ok(Spanned { value, span })
    }

    /// `key = Set::Variant`
    pub(crate) fn path(&self) -> Result<Path> {
        let takes = "a path, such as `Queue::Emails`";
        let value = self.value(takes)?;
        value
            .call(Path::parse_mod_style)
            .map_err(|error| self.takes(takes, error.span()))
    }

    /// `key = "some::path"`
    pub(crate) fn quoted_path(&self) -> Result<Path> {
        let text = self.text()?;
        text.parse_with(Path::parse_mod_style).map_err(|_| {
            self.takes(
                "a path in quotes, such as \"::queuey_rabbitmq\"",
                text.span(),
            )
        })
    }

    fn value(&self, takes: &str) -> Result<ParseStream<'a>> {
        if self.meta.input.peek(Token![=]) {
            let value = self.meta.value()?;
            if !value.is_empty() {
                return Ok(value);
            }
        }
        Err(self.takes(takes, self.span))
    }

    fn literal<T>(&self, takes: &str, pick: impl FnOnce(Lit) -> Option<T>) -> Result<T> {
        let value = self.value(takes)?;
        let literal: Lit = value
            .parse()
            .map_err(|error| self.takes(takes, error.span()))?;
        let span = literal.span();
        pick(literal).ok_or_else(|| self.takes(takes, span))
    }

    fn not_blank(&self, text: &LitStr) -> Result<()> {
        if text.value().trim().is_empty() {
            let error = format!("`{}` must not be empty", self.name);
            return Err(Error::new(text.span(), error));
        }
        Ok(())
    }

    fn takes(&self, takes: &str, span: Span) -> Error {
        Error::new(span, format!("`{}` takes {takes}", self.name))
    }
}
