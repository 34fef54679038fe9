//! Attribute of the tests that run on both engines.

use proc_macro::TokenStream;
use quote::quote;
use syn::{ItemFn, parse_macro_input};

/// Declares a test that runs on both engines, as `<name>::sqlite` and `<name>::postgres`.
///
/// ```text
/// #[on_both_engines]
/// async fn a_tag_is_found(store: TestStore) {
///     …
/// }
/// ```
///
/// PostgreSQL's database has the schema already. It is empty with `#[on_both_engines(empty)]`, as
/// SQLite's always is.
#[proc_macro_attribute]
pub fn on_both_engines(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let ItemFn { attrs, sig, block, .. } = parse_macro_input!(item as ItemFn);
    let on_postgres = match arguments.to_string().as_str() {
        "" => quote!(run_on_postgres),
        "empty" => quote!(run_on_empty_postgres),
        _ => return quote!(compile_error!("the only argument is `empty`");).into(),
    };
    let (name, inputs) = (&sig.ident, &sig.inputs);
    let tests = quote! {
        #(#attrs)*
        mod #name {
            #[allow(unused_imports, reason = "a test may use nothing of its module")]
            use super::*;

            async fn on_store(#inputs) #block

            #[test]
            fn sqlite() {
                ::galley_testing::run_on_sqlite(on_store);
            }

            #[test]
            fn postgres() {
                ::galley_testing::#on_postgres(on_store);
            }
        }
    };
    tests.into()
}
