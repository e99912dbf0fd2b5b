/** Every error of the local API: code → HTTP status and message. */
const table = {
  invalid_request: [422, 'The request is not as it should be.'],
  invalid_quantity: [422, 'The row cannot hold that many units.'],
  invalid_json: [400, 'The body is not JSON.'],
  unsupported_media_type: [415, 'The body must be sent without a Content-Encoding.'],
  payload_too_large: [413, 'The body is too large.'],
  host_not_allowed: [
    403,
    'The hub is not called by this name: use its address, or add the name to ALLOWED_HOSTS.',
  ],
  authentication_required: [401, 'The token or PIN is missing or wrong.'],
  other_hub: [421, 'Another hub answers at this address.'],
  too_many_attempts: [429, 'Too many wrong tokens or PINs were tried: try again later.'],
  not_found: [404, 'There is no such thing.'],
  not_unknown: [409, 'The outcome of this operation is known.'],
  not_now: [409, 'Not now.'],
  unavailable: [503, 'The hub cannot do that now.'],
  refused: [409, 'The hub refused: nothing moved.'],
  failed: [502, 'The hub tried, and it failed.'],
  unknown: [502, 'It may or may not have happened.'],
  timeout: [504, 'No result came in time; it may still come.'],
  internal_error: [500, 'The hub failed to answer.'],
} as const

export type LocalErrorCode = keyof typeof table

/** An error of the local API: `{error: {code, message, details?}}`. */
export class LocalError extends Error {
  readonly code: LocalErrorCode
  readonly details: object | undefined

  constructor(code: LocalErrorCode, details?: object) {
    super(table[code][1])
    this.code = code
    this.details = details
  }

  get status() {
    return table[this.code][0]
  }

  body(): { error: { code: LocalErrorCode; message: string; details?: object } } {
    const { code, message, details } = this
    return { error: { code, message, ...(details && { details }) } }
  }
}
