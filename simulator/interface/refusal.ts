/** Thrown by a handler to answer with an error. */
export class Refusal extends Error {
  readonly status: 400 | 403 | 404 | 409 | 413 | 415 | 422
  readonly code: string
  constructor(status: Refusal['status'], code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}
