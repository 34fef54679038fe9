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

/** Values of a query: lists are joined by commas, dates are written as times. */
type QueryValue<Value> = string extends Value ? Value | readonly string[] | Date : Value;

type Query<Name extends OperationName> = operations[Name] extends { parameters: { query?: infer Parameters } }
  ? Parameters extends object
    ? { [Key in keyof Parameters]: QueryValue<NonNullable<Parameters[Key]>> | Extract<Parameters[Key], undefined> }
    : never
  : never;

type Body<Name extends OperationName> = operations[Name] extends {
  requestBody?: { content: { "application/json": infer Json } };
}
  ? Json
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
  signal?: AbortSignal;
  /** The timeout of an attempt, in milliseconds. */
  timeout?: number;
  /** A resource that this client read, or an entity tag: a change of any other version is rejected. */
  ifMatch?: object | string;
  /** The key of a repeatable POST. By default each call has its own. */
  idempotencyKey?: string;
  /** The workspace of a request with a session. */
  workspace?: string;
  /** Accepts data of a replica that are up to this many seconds old. */
  maxAge?: number;
  /** Further headers. */
  headers?: Record<string, string>;
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

type Format<Given> = Given extends { contentFormat: "html" | "markdown" } ? string : ContentTree;

type HasContent<Given> = Given extends { content: true }
  ? true
  : Given extends { fields: infer Fields }
    ? Fields extends readonly string[]
      ? "content" extends Fields[number]
        ? true
        : false
      : false
    : false;

type CustomData<Given, Types extends WorkspaceTypes> = Given extends { customData: "object" }
  ? GroupData<Given, Types> | null
  : string | null;

/** The custom data in the group that a list names alone. Groups below it may have other types. */
type GroupData<Given, Types extends WorkspaceTypes> = Given extends { contentGroupId: infer Group extends string }
  ? Given extends { subtree: boolean }
    ? Types["customData"]
    : Group extends keyof Types["groups"]
      ? Types["groups"][Group]
      : Types["customData"]
  : Types["customData"];

type WholePiece<Given, Types extends WorkspaceTypes> = Omit<Schemas["ContentPiece"], "content" | "customData"> & {
  customData: CustomData<Given, Types>;
} & (HasContent<Given> extends true ? { content: Format<Given> } : unknown);

/** A piece as the parameters of a request select it: its fields, content and custom data. */
export type Piece<Given = unknown, Types extends WorkspaceTypes = WorkspaceTypes> = Given extends {
  fields: infer Fields extends readonly string[];
}
  ? Pick<WholePiece<Given, Types>, Extract<keyof WholePiece<Given, Types>, Fields[number] | "id" | ContentKey<Given>>>
  : WholePiece<Given, Types>;

type ContentKey<Given> = HasContent<Given> extends true ? "content" : never;

/** The fields that `fields` selects. */
export type PieceField = keyof Schemas["ContentPiece"];

type PieceQuery<Name extends OperationName, Types extends WorkspaceTypes> = Omit<
  Input<Name>,
  "fields" | "variant"
> & {
  fields?: readonly PieceField[];
  variant?: Types["variant"];
};

/** The operations that read pieces: their results depend on the parameters. */
export interface PieceReads<Types extends WorkspaceTypes> {
  /** Reads a piece. */
  getContentPiece<const Given extends PieceQuery<"getContentPiece", Types>>(
    input: Given,
    options?: RequestOptions,
  ): Promise<Piece<Given, Types>>;
  /** Lists pieces. */
  listContentPieces<const Given extends PieceQuery<"listContentPieces", Types>>(
    input?: Given,
    options?: RequestOptions,
  ): Pages<Piece<Given, Types>>;
  /** Searches pieces, the most relevant first. */
  searchContentPieces<const Given extends PieceQuery<"searchContentPieces", Types>>(
    input: Given,
    options?: RequestOptions,
  ): Pages<Omit<Schemas["SearchHit"], "piece"> & { piece: Piece<Given, Types> }>;
  /** Reads a piece as it was at a revision. */
  getRevision<const Given extends PieceQuery<"getRevision", Types>>(
    input: Given,
    options?: RequestOptions,
  ): Promise<Piece<Given, Types>>;
}

/** All operations, by the names that the documentation of the API has. */
export type Operations<Types extends WorkspaceTypes = WorkspaceTypes> = PieceReads<Types> & {
  [Name in Exclude<OperationName, keyof PieceReads<Types>>]: Operation<Name>;
};
