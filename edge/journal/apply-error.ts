/**
 * Why an entry of the cloud's stream cannot be applied, and never will be: it goes to the dead letters and the cursor
 * moves on (I8). Anything else that is thrown while an entry is applied undoes the whole batch.
 */
export class ApplyError extends Error {
  override name = 'ApplyError'
  readonly code: 'invalid' | 'unknown_product'
  constructor(code: ApplyError['code'], message: string) {
    super(message)
    this.code = code
  }
}
