import type { ValidationItem } from '../../protocol/contract/errors.ts'
import { errorCodes, errorStatus } from '../../protocol/model/error-codes.ts'
import type { ErrorCode } from '../../protocol/model/error-codes.ts'

export type ErrorDetails = Readonly<Record<string, unknown>>

/** An answer that is an error, by its code. Services throw it; `http/answer.ts` alone writes it out. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetails | undefined
  /** Present for requests that failed validation. */
  readonly items: readonly ValidationItem[] | undefined
  /** For the log alone: why a credential is refused. `why` is one of a few sentences, `found` the value from the caller. */
  why: { why: string; found?: string } | undefined = undefined

  constructor(code: ErrorCode, message?: string, details?: ErrorDetails, items?: readonly ValidationItem[]) {
    super(message ?? sentenceOf(items ?? []) ?? errorCodes[code].message)
    this.name = 'ApiError'
    this.code = code
    this.details = details
    this.items = items
  }

  /** A request that failed validation: what is wrong with it. */
  static invalid(...items: ValidationItem[]): ApiError {
    return new ApiError('validation_error', undefined, undefined, items)
  }

  get status(): number {
    return errorStatus(this.code, this.details)
  }
}

/** What is wrong with a request, in a sentence: the first problem, and how many there are besides. */
export function sentenceOf(items: readonly ValidationItem[]): string | undefined {
  const [first, ...others] = items
  if (!first) return undefined
  const sentence = `${placeOf(first)}: ${first.msg.replace(OURS, '')}.`
  return others.length === 0 ? sentence : `${sentence} And ${others.length} more: see \`detail\`.`
}

/** What a message of our own begins with in `detail`, where FastAPI's callers know it. */
const OURS = /^Value error, /

/** Of a name that a stranger has made up, so much is repeated. */
const LONGEST_FIELD = 100

/** `quantity`, `hub_id in the query`; of a list by its index: `items.0.product_id`. */
function placeOf({ loc: [place, ...path] }: ValidationItem): string {
  const field = path.join('.').slice(0, LONGEST_FIELD)
  if (place === 'body') return field === '' ? 'The body' : field
  return field === ''
    ? `The ${place}`
    : place === 'header'
      ? `The header ${field}`
      : `${field} in the ${place}`
}
