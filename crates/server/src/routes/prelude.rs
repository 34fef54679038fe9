//! The types that most handlers use.

pub(crate) use axum::extract::State;
pub(crate) use axum::response::Response;
pub(crate) use galley_api_types::schemas;
pub(crate) use galley_application::{Respond, StalenessBound, VersionPrecondition};

pub(crate) use crate::app::App;
pub(crate) use crate::extract::actor::{Actor, AnyToken};
pub(crate) use crate::extract::pagination::IdPageParams;
pub(crate) use crate::extract::query::Query;
pub(crate) use crate::extract::request::{
    ActionRequest, ChangeActionRequest, ChangeRequest, CreateRequest, IdListQuery, IdQuery,
    ParsedChange,
};
pub(crate) use crate::problem::Problem;
pub(crate) use crate::respond::{created, response};
