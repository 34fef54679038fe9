export { type Client, createClient, etagOf, retryOnConflict, type Upload } from "./client.ts";
export { GalleyError } from "./error.ts";
export type { FollowOptions } from "./feed.ts";
export { type Page, Pages } from "./pages.ts";
export type { ClientOptions } from "./transport.ts";
export type {
  ContentTree,
  Input,
  OperationName,
  Operations,
  Piece,
  PieceField,
  Reason,
  RequestOptions,
  Schemas,
  WorkspaceTypes,
} from "./types.ts";
export {
  type FeedEvent,
  verifyWebhook,
  type VerifyOptions,
  type WebhookEvent,
  type WebhookRequest,
  WebhookVerificationError,
} from "./webhook.ts";
