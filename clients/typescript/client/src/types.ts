/** The types of operations, derived from the generated types of the API. */
import type { components, operations } from "./generated/schema.ts";
import type { OPERATIONS } from "./generated/operations.ts";
import type { Pages } from "./pages.ts";

/** The schemas of the API by name, such as `Schemas["Tag"]`. */
export type Schemas = components["schemas"];

/** The reason of a problem. Programs distinguish problems by it. */
export type Reason = Schemas["Problem"]["reason"];

/** The content of a piece as a tree, in the JSON format of TipTap. */
export type ContentTree = Schemas["ContentTree"];

/** The types of a workspace, as `galley types` writes them. */
export interface WorkspaceTypes {
  /** The custom data of the pieces in a group, by its id. */
  groups?: object;
  /** The custom data of any piece. */
  customData: unknown;
  /** The keys of variants. */
  variant: string;
}

type Row = (typeof OPERATIONS)[number];

/** The names of all operations. */
export type OperationName = Row[0];

type KindOf<Name extends OperationName> = Extract<Row, readonly [Name, ...unknown[]]>[1];

/** The operations with parameters of several values. */
type Filtered = "listContentPieces" | "searchContentPieces" | "listContentPieceSources";

/** Several values are joined by commas, and a `Date` is written as a time. */
type QueryValue<Name, Key, Value> =
  | Value
  | (Name extends Filtered ? (Key extends "ids" | "tagId" | "contentGroupId" ? readonly string[] : never) : never)
  | (Key extends "updatedSince" | "dateFrom" | "dateTo" | "since" | "until" ? Date : never);

type Query<Name extends OperationName> = operations[Name] extends { parameters: { query?: infer Parameters } }
  ? Parameters extends object
    ? { [Key in keyof Parameters]: QueryValue<Name, Key, Parameters[Key]> | MaybeUndefined<Parameters, Key> }
    : never
  : never;

/** An optional member may be `undefined`. */
type MaybeUndefined<Object, Key extends keyof Object> = object extends Pick<Object, Key> ? undefined : never;

type Body<Name extends OperationName> = operations[Name] extends {
  requestBody?: { content: { "application/json": infer Json } };
}
  ? { [Key in keyof Json]: Json[Key] | MaybeUndefined<Json, Key> }
  : never;

/** The parameters or the body of an operation. */
export type Input<Name extends OperationName> = KindOf<Name> extends "PUT" | "POST" ? Body<Name> : Query<Name>;

type Success<Name extends OperationName> = operations[Name]["responses"] extends infer Responses
  ? Responses[Extract<keyof Responses, 200 | 201 | 202>]
  : never;

type Json<Response> = Response extends { content: { "application/json": infer Value } } ? Value : never;

type Result<Name extends OperationName> = Json<Success<Name>>;

/** The member of a union that all others extend: of a resource and its id, the latter. */
type Smallest<Union, All = Union> = Union extends unknown ? ([All] extends [Union] ? Union : never) : never;

type Others<Union, One> = Union extends unknown ? ([One] extends [Union] ? never : Union) : never;

/** The resource that a request prefers, of the possible results. */
type Preferred<Union> =
  [Others<Union, Smallest<Union>>] extends [never] ? Union : Others<Union, Smallest<Union>>;

/** The options of a single request. */
export interface RequestOptions {
  /** Aborts the request and its retries. */
  signal?: AbortSignal | undefined;
  /** The timeout of an attempt, in milliseconds. */
  timeout?: number | undefined;
  /** A resource that this client read, or an entity tag: a change of any other version is rejected. */
  ifMatch?: object | string | undefined;
  /** The key of a repeatable POST. By default each call has its own. */
  idempotencyKey?: string | undefined;
  /** The workspace of a request with a session. */
  workspace?: string | undefined;
  /** Accepts data of a replica that are up to this many seconds old. */
  maxAge?: number | undefined;
  /** Further headers. */
  headers?: Record<string, string> | undefined;
}

/** Requests the resource in the response to a change. */
export interface Representation {
  return: "representation";
}

type Arguments<Value, Options> = [Value] extends [never]
  ? [input?: undefined, options?: Options]
  : object extends Value
    ? [input?: Value, options?: Options]
    : [input: Value, options?: Options];

/** The function of an operation. */
export type Operation<Name extends OperationName> =
  KindOf<Name> extends "LIST"
    ? (...args: Arguments<Input<Name>, RequestOptions>) => Pages<Result<Name> extends (infer Item)[] ? Item : never>
    : KindOf<Name> extends "GET"
      ? (...args: Arguments<Input<Name>, RequestOptions>) => Promise<Result<Name>>
      : [Result<Name>] extends [never]
        ? (...args: Arguments<Input<Name>, RequestOptions>) => Promise<void>
        : Change<Name>;

interface Change<Name extends OperationName> {
  (
    ...args: [Input<Name>] extends [never]
      ? [input: undefined, options: RequestOptions & Representation]
      : [input: Input<Name>, options: RequestOptions & Representation]
  ): Promise<Preferred<Result<Name>>>;
  (...args: Arguments<Input<Name>, RequestOptions>): Promise<Plain<Name>>;
}

/** The result without a preference: that of a creation is the id, and other changes have none. */
type Plain<Name extends OperationName> = operations[Name]["responses"] extends { 204: unknown }
  ? void
  : [Smallest<Result<Name>>] extends [never]
    ? Result<Name>
    : Smallest<Result<Name>>;

type Format<Given> = Given extends { contentFormat: infer Named } ? FormatOf<Named> : ContentTree;

type FormatOf<Named> = Named extends "html" | "markdown" ? string : ContentTree;

type HasContent<Given> = Given extends { content: true }
  ? true
  : Given extends { fields: readonly (infer Field)[] }
    ? "content" extends Field
      ? true
      : false
    : false;

type CustomData<Given, Types extends WorkspaceTypes> = Given extends { customData: infer Form }
  ? DataOf<Form, Given, Types> | null
  : string | null;

type DataOf<Form, Given, Types extends WorkspaceTypes> = Form extends "object" ? GroupData<Given, Types> : string;

/** The custom data in the group that a list names alone. Groups below it may have other types. */
type GroupData<Given, Types extends WorkspaceTypes> = Given extends { contentGroupId: infer Group extends string }
  ? Given extends { subtree: boolean }
    ? Types["customData"]
    : Group extends keyof Types["groups"]
      ? Types["groups"][Group]
      : Types["customData"]
  : Types["customData"];

/** The fields that only some responses have. */
type Special = "content" | "customData" | "revision" | "conversionWarnings";

type WholePiece<Given, Types extends WorkspaceTypes> = Omit<Schemas["ContentPiece"], Special> & {
  customData: CustomData<Given, Types>;
} & (HasContent<Given> extends true ? { content: Format<Given> } : unknown);

/** A piece as the parameters of a request select it: its fields, content and custom data. */
export type Piece<Given = unknown, Types extends WorkspaceTypes = WorkspaceTypes> = Given extends {
  fields: readonly (infer Field)[];
}
  ? PieceField extends Field
    ? Partial<WholePiece<Given, Types>> & { id: string }
    : Pick<WholePiece<Given, Types>, Extract<keyof WholePiece<Given, Types>, Field | "id" | ContentKey<Given>>>
  : WholePiece<Given, Types>;

type ContentKey<Given> = HasContent<Given> extends true ? "content" : never;

/** The fields that `fields` selects. */
export type PieceField = Exclude<keyof Schemas["ContentPiece"], "revision" | "conversionWarnings">;

type PieceQuery<Name extends OperationName, Types extends WorkspaceTypes> = Omit<
  Input<Name>,
  "fields" | "variant"
> & {
  fields?: readonly PieceField[] | undefined;
  variant?: Types["variant"] | undefined;
};

/** Rejects parameters that the operation lacks, as inference would accept them. */
type Known<Given, Parameters> = Given & Record<Exclude<keyof Given, keyof Parameters>, never>;

/** The operations that read pieces: their results depend on the parameters. */
export interface PieceReads<Types extends WorkspaceTypes> {
  /** Reads a piece. */
  getContentPiece<const Given extends PieceQuery<"getContentPiece", Types>>(
    input: Known<Given, PieceQuery<"getContentPiece", Types>>,
    options?: RequestOptions,
  ): Promise<Piece<Given, Types>>;
  /** Lists pieces. */
  listContentPieces<const Given extends PieceQuery<"listContentPieces", Types>>(
    input?: Known<Given, PieceQuery<"listContentPieces", Types>>,
    options?: RequestOptions,
  ): Pages<Piece<Given, Types>>;
  /** Searches pieces, the most relevant first. */
  searchContentPieces<const Given extends PieceQuery<"searchContentPieces", Types>>(
    input: Known<Given, PieceQuery<"searchContentPieces", Types>>,
    options?: RequestOptions,
  ): Pages<Omit<Schemas["SearchHit"], "piece"> & { piece: Piece<Given, Types> }>;
  /** Reads a piece as it was at a revision. */
  getRevision<const Given extends PieceQuery<"getRevision", Types>>(
    input: Known<Given, PieceQuery<"getRevision", Types>>,
    options?: RequestOptions,
  ): Promise<Piece<Given, Types> & { revision: NonNullable<Schemas["ContentPiece"]["revision"]> }>;
}

/** All operations, by the names that the documentation of the API has. */
export type Operations<Types extends WorkspaceTypes = WorkspaceTypes> = PieceReads<Types> & {
  [Name in Exclude<OperationName, keyof PieceReads<Types>>]: Operation<Name>;
};
