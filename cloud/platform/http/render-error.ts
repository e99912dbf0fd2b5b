import type { ErrorBody } from '../../../protocol/contract/errors.ts'
import { errorCodes } from '../../../protocol/model/error-codes.ts'
import { ApiError } from '../api-error.ts'

/** Writes an error. Whatever is not an `ApiError` is ours, and says nothing of our insides. */
export function renderError(error: unknown, requestId: string): { status: number; body: ErrorBody } {
  if (!(error instanceof ApiError)) {
    const { status, message } = errorCodes.internal_error
    return {
      status,
      body: { error: { code: 'internal_error', message }, detail: message, request_id: requestId },
    }
  }
  const { code, message, details, items } = error
  return {
    status: error.status,
    body: {
      error: { code, message, ...(details && { details }) },
      detail: items ? [...items] : message,
      request_id: requestId,
    },
  }
}
