//! Schemas of the forms under `/sign-in`.

#![expect(dead_code, reason = "forms are read field by field; only the schemas are used")]

use utoipa::ToSchema;

/// The form of a link to sign in.
#[derive(ToSchema)]
#[schema(as = SignInLinkForm)]
pub(super) struct LinkForm {
    /// The code in the link.
    #[schema(example = "kG1p0i3nYcYQ3X1bHc2mZq7n5T0uE8w4rJv9sLdAfBg")]
    code: String,
}

/// The form of a sign-in with the identity provider. It has no field.
#[derive(ToSchema)]
#[schema(as = SignInProviderForm)]
pub(super) struct ProviderForm {}

/// The form of a code to sign in.
#[derive(ToSchema)]
#[schema(as = SignInCodeForm)]
pub(super) struct CodeForm {
    /// The code in the mail: eight letters and digits, in any case, with or without the hyphen.
    #[schema(example = "7KQM-2D9X")]
    code: String,
}
