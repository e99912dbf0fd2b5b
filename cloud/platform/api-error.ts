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

  constructor(code: ErrorCode, message?: string, details?: ErrorDetails, items?: readonly ValidationItem[]) {
    super(message ?? errorCodes[code].message)
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
