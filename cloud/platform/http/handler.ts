import type { z } from 'zod'
import type { FormFile } from '../../../protocol/contract/form.ts'
import type { Route } from '../../../protocol/contract/route.ts'
import type { RouteId, Routes } from '../../../protocol/contract/routes.ts'
import type {
  AnonymousCredential,
  DiagCredential,
  IdentityCredential,
  OwnerCredential,
  UserCredential,
} from '../credentials/credential.ts'
import type { JsonText } from '../store/json.ts'

/** A form with stored files. They are removed unless the handler's transaction keeps them (`Media.keep`). */
interface ParsedForm<Fields> {
  fields: Fields
  files: readonly FormFile[]
  /** The id of the object that a `numbered` form creates. It is constant within a request. */
  number(): Promise<number>
}

type FormOf<R> = R extends { form: { fields: infer S extends z.ZodType } }
  ? ParsedForm<z.output<S>>
  : undefined

type Parsed<R, Part extends string> =
  R extends Record<Part, infer S extends z.ZodType> ? z.output<S> : undefined

interface CredentialByKind {
  api: OwnerCredential
  user: UserCredential
  identity: IdentityCredential
  'optional-identity': IdentityCredential | AnonymousCredential
  diag: DiagCredential
  none: AnonymousCredential
}

/**
 * A request that has passed the checks of credential, scope, rate limit, validation and hub access. A `user_id` in the
 * path is the credential's user.
 */
export interface HandlerInput<R extends Route> {
  params: Parsed<R, 'params'>
  query: Parsed<R, 'query'>
  body: Parsed<R, 'body'>
  form: FormOf<R>
  credential: CredentialByKind[R['auth']['kind']]
  requestId: string
  /** The caller's network, as limits count it (`networkOf`). */
  network: string
  idempotencyKey: string | undefined
  /** With a key: identifies the request. A repetition uses it to avoid repeating effects on the outside world. */
  requestName: string | undefined
  /**
   * With a repeated key: the memento of the handler's first answer (`ReplyOptions.memento`). The handler must change
   * nothing.
   */
  memento: Memento | undefined
  /** The body as text. Empty if the route reads none. */
  rawBody: string
  /** This and the next member belong to a class: rest patterns and copies of the object omit them. */
  readonly url: URL
  header(name: string): string | undefined
  /** Whether the caller prefers the route's other media type (`alsoProduces`). */
  readonly wantsOther: boolean
}

/** A body with another status or further headers; see `reply`. */
export class Reply<Body> {
  readonly body: Body
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly memento: Memento | undefined

  constructor(body: Body, options: ReplyOptions) {
    this.body = body
    this.status = options.status
    this.headers = options.headers ?? {}
    this.memento = options.memento
  }
}

interface ReplyOptions {
  status?: number
  headers?: Readonly<Record<string, string>>
  /**
   * Stored for an idempotency key instead of the body, if a repetition can read the answer again: a few ids. The
   * handler then gets it as `HandlerInput.memento`.
   */
  memento?: Memento
}

/** A small JSON value. */
export type Memento = Readonly<Record<string, unknown>>

export const reply = <Body>(body: Body, options: ReplyOptions): Reply<Body> => new Reply(body, options)

type HandlerOutput<R extends Route> = BodyOf<R> | Reply<BodyOf<R>>
type BodyOf<R extends Route> =
  | z.input<R['response']>
  | JsonText<z.input<R['response']>>
  | (R extends { alsoProduces: string } ? string | ReadableStream : never)

/** Answers a request, or throws `ApiError`. */
type Handler<R extends Route> = (input: HandlerInput<R>) => Promise<HandlerOutput<R>>

/** The handlers of some routes, by their ids. */
export type Handlers<Id extends RouteId> = { [K in Id]: Handler<Routes[K]> }
