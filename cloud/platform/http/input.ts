import type { Route } from '../../../protocol/contract/route.ts'
import type { Credential } from '../credentials/credential.ts'
import { networkOf } from '../limits/budgets.ts'
import type { Call } from './answer.ts'
import type { Memento } from './handler.ts'
import { nameOf, type KeyedRequest } from './idempotency.ts'
import type { ReceivedForm } from './read-form.ts'
import type { ReceivedBody } from './receive.ts'
import { validateForm, type ParsedParts } from './validate.ts'

/** A request that has passed the checks of its route. */
export interface Checked {
  body: ReceivedBody
  parsed: ParsedParts
  keyed: KeyedRequest | undefined
  caller: Credential
  form: ReceivedForm | undefined
}

/** The input of a handler. The table of handlers types its parts per route. */
export class Input {
  readonly params: undefined
  readonly query: undefined
  readonly body: undefined
  readonly form: undefined
  readonly credential: Credential
  readonly requestId: string
  readonly network: string
  readonly idempotencyKey: string | undefined
  readonly requestName: string | undefined
  memento: Memento | undefined = undefined
  readonly rawBody: string
  readonly #call: Call
  readonly #other: Route['alsoProduces']

  constructor(route: Route, call: Call, { body, parsed, keyed, caller, form }: Checked) {
    this.params = parsed.params as undefined
    this.query = parsed.query as undefined
    this.body = parsed.body as undefined
    this.form = (form && { ...form, fields: validateForm(route, route.form!, form) }) as undefined
    this.credential = caller
    this.requestId = call.requestId
    this.network = networkOf(call.address)
    this.idempotencyKey = keyed?.key
    this.requestName = keyed && nameOf(keyed)
    this.rawBody = body.text
    this.#call = call
    this.#other = route.alsoProduces
  }

  header(name: string): string | undefined {
    return this.#call.header(name)
  }

  get wantsOther(): boolean {
    return this.#other !== undefined && prefersType(this.header('Accept'), this.#other)
  }

  /** Parsed on access: few handlers need it, and parsing takes longer than many handlers. */
  get url(): URL {
    return new URL(this.#call.c.req.url)
  }
}

/** Whether an `Accept` prefers a media type to JSON (RFC 9110 §12.5.1). Without a preference the answer is JSON. */
export function prefersType(accept: string | undefined, type: string): boolean {
  const ranges = (accept ?? '').split(',').map(readRange)
  const [own, json] = [weigh(ranges, type), weigh(ranges, 'application/json')]
  if (own.weight !== json.weight) return own.weight > json.weight
  return own.weight > 0 && own.exactness === 2 && (json.exactness < 2 || own.index < json.index)
}

interface Range {
  name: string
  weight: number
}

function readRange(text: string): Range {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.split('=')[1]
  return { name, weight: weight === undefined ? 1 : Number(weight) || 0 }
}

/** The weight of a type by the most exact range: its name, `text/*`, or any type. */
function weigh(ranges: readonly Range[], type: string) {
  const names = ['*/*', `${type.split('/')[0]}/*`, type]
  for (const exactness of [2, 1, 0]) {
    const index = ranges.findIndex(({ name }) => name === names[exactness])
    if (index >= 0) return { weight: ranges[index]!.weight, exactness, index }
  }
  return { weight: 0, exactness: -1, index: -1 }
}
