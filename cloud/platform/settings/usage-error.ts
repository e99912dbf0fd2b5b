/** What the operator did wrong, in words for the operator. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
