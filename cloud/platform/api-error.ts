import type { ValidationItem } from '../../protocol/contract/errors.ts'
import { errorCodes, errorStatus } from '../../protocol/model/error-codes.ts'
import type { ErrorCode } from '../../protocol/model/error-codes.ts'

export type ErrorDetails = Readonly<Record<string, unknown>>

/** An error response. Services throw it; only `http/answer.ts` renders it. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetails | undefined
  /** Present for every 422. */
  readonly items: readonly ValidationItem[] | undefined
  /** For the log only: `why` is one of a few fixed sentences, `found` is the refused value. */
  why: { why: string; found?: string } | undefined = undefined

  constructor(code: ErrorCode, message?: string, details?: ErrorDetails, items?: readonly ValidationItem[]) {
    super(message ?? sentenceOf(items ?? []) ?? errorCodes[code].message)
    this.name = 'ApiError'
    this.code = code
    this.details = details
    this.items = items ?? (this.status === 422 ? [wrongAt(['body'], this.message)] : undefined)
  }

  /** A request that failed validation, with its problems. */
  static invalid(...items: ValidationItem[]): ApiError {
    return new ApiError('validation_error', undefined, undefined, items)
  }

  /** A refused value at a place of the request. The message is the code's, unless another one is given. */
  static at(loc: ValidationItem['loc'], code: ErrorCode, details?: ErrorDetails, message?: string): ApiError {
    const sentence = message ?? errorCodes[code].message
    return new ApiError(code, sentence, details, [wrongAt(loc, sentence)])
  }

  get status(): number {
    return errorStatus(this.code, this.details)
  }
}

const wrongAt = (loc: ValidationItem['loc'], msg: string): ValidationItem => ({
  loc,
  msg,
  type: 'value_error',
})

/** The first problem as a sentence, and the number of further problems. */
export function sentenceOf(items: readonly ValidationItem[]): string | undefined {
  const [first, ...others] = items
  if (!first) return undefined
  const sentence = `${placeOf(first)}: ${first.msg.replace(OURS, '')}.`
  return others.length === 0 ? sentence : `${sentence} And ${others.length} more: see \`detail\`.`
}

/** Prefix of our own messages in `detail`, which FastAPI's callers know. */
const OURS = /^Value error, /

/** Maximum length of a caller's field name in a message. */
const LONGEST_FIELD = 100

/** For example `quantity` or `hub_id in the query`. An element of a list has its index: `items.0.product_id`. */
function placeOf({ loc: [place, ...path] }: ValidationItem): string {
  const field = path.join('.').slice(0, LONGEST_FIELD)
  if (place === 'body') return field === '' ? 'The body' : field
  return field === ''
    ? `The ${place}`
    : place === 'header'
      ? `The header ${field}`
      : `${field} in the ${place}`
}
