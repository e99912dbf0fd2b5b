import type { Form } from '../../../protocol/contract/form.ts'
import { refusesFields, type Route } from '../../../protocol/contract/route.ts'
import { isPlainBody } from '../../../protocol/model/http-refusals.ts'
import { ApiError } from '../api-error.ts'
import type { CloudContext } from '../context.ts'
import type { Credential } from '../credentials/credential.ts'
import type { Authenticated } from '../credentials/resolve.ts'
import { holderOf, networkOf, type Budgets } from '../limits/budgets.ts'
import { fullError } from '../limits/full.ts'
import type { SpentTime } from '../limits/spent-time.ts'
import type { CleaningLimits } from '../media/clean/parts.ts'
import type { Media } from '../media/media.ts'
import type { CloudSettings } from '../settings/limits.ts'
import type { Call } from './answer.ts'
import { bodyOf, hasBody, parseJson, type ReadBody } from './read-body.ts'
import { formRequestOf, readForm, type ReceivedForm } from './read-form.ts'
import { signatureTime } from './signature.ts'
import type { Memento } from './handler.ts'
import { nameOf, type KeyedRequest } from './idempotency.ts'
import { validateForm, type ParsedParts } from './validate.ts'

/** Dependencies for receiving the bodies of a route. */
interface Receiving {
  route: Route
  context: CloudContext
  readBody: ReadBody
  budgets: Budgets
  media: Media
  mediaTime: SpentTime
}

/** A request's body before validation. */
export interface ReceivedBody {
  text: string
  json: { present: boolean; value: unknown }
}

/** Whether to read the body: the route accepts one, or must refuse the fields of an unexpected one. */
export const readsBody = (route: Route, { c }: Call): boolean =>
  route.body !== undefined || route.rawBody === true || (refusesFields(route) && hasBody(c))

/** Bodies without fields. Some clients send one with every POST. */
const EMPTY_BODIES = new Set(['', '{}', '[]', 'null', '""'])

export const NO_BODY: ReceivedBody = { text: '', json: { present: false, value: undefined } }

/** Refuses a compressed or otherwise encoded body, because the service decodes none. */
function requireIdentity(call: Call): void {
  if (!isPlainBody(call.header('Content-Encoding')))
    throw new ApiError('unsupported_media_type', 'The body must be sent without a Content-Encoding.')
}

/** Maximum body of a call that is authorized only by a signature. */
const SIGNED_BYTES = 64 * 1024

export async function receiveBody(
  { route, readBody }: Receiving,
  call: Call,
  { credential }: Authenticated,
): Promise<ReceivedBody> {
  requireIdentity(call)
  const isOwner = route.interface === 'owner'
  const text = await readBody(bodyOf(call.c), {
    isOwner: isOwner || route.rawBody === true,
    holder: holderOf(networkOf(call.address), credential),
    ...(route.signedBy && { limitBytes: SIGNED_BYTES }),
  })
  if (route.rawBody) return { ...NO_BODY, text }
  if (!route.body && EMPTY_BODIES.has(text.trim())) return NO_BODY
  const json = parseJson(text, call.header('Content-Type'), isOwner)
  return { text, json: route.bodyOptional && !json.present ? { present: true, value: {} } : json }
}

/** Refuses a call with a missing or old signature before reading its body. */
export function requireSignature({ route: { signedBy }, context }: Receiving, call: Call): void {
  if (!signedBy) return
  const header = signedBy.map((name) => call.header(name)).find((value) => value !== undefined)
  if (header === undefined) throw new ApiError('invalid_signature', `The header ${signedBy[0]} is missing.`)
  const { runtime, settings } = context
  const terms = { nowMs: runtime.clock.now(), toleranceMs: settings.webhookToleranceMs }
  if (signatureTime(header, terms) === undefined)
    throw new ApiError(
      'invalid_signature',
      'The signature has no time `t=`, or its time is too far from now.',
    )
}

const cleaningLimits = (settings: CloudSettings): CleaningLimits => ({
  parts: settings.mediaParts,
  pixels: settings.imagePixels,
  processorMs: settings.mediaProcessorMs,
})

/**
 * Reads a form. It holds a part of the budget of uploads while it arrives. The processor time of its files counts
 * against its caller for a minute.
 */
export async function receiveForm(
  { context, media, budgets, mediaTime }: Receiving,
  form: Form,
  call: Call,
  caller: Credential,
): Promise<ReceivedForm> {
  requireIdentity(call)
  const { c } = call
  const { runtime, settings } = context
  const request = formRequestOf(form, c)
  const holder = holderOf(networkOf(call.address), caller)
  const evict = (): void => void request.body.bytes?.destroy(new ApiError('service_unavailable'))
  const { hold, full } = budgets.uploads.take(holder, { evict })
  if (!hold) throw fullError(full, 'uploads under way')
  try {
    const work = mediaTime.begin(holder)
    const spent = (ms: number): void => work.spent(ms)
    const limits = { ...settings, clock: runtime.clock, cleaning: cleaningLimits(settings), spent }
    return await readForm(media, limits, request).finally(() => work.end())
  } finally {
    hold.release()
  }
}

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
