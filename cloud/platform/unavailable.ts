/**
 * A part of the installation does not work: a folder is full or read-only, a store refuses. Calls that need it get 503.
 * The log contains a sentence that names the setting, and the original error.
 */
export class PartUnavailable extends Error {
  override readonly name = 'PartUnavailable'
  /** The cause in the words of its library or the system. */
  readonly reason: string

  constructor(sentence: string, cause: unknown) {
    super(sentence, { cause })
    this.reason = cause instanceof Error ? cause.message : String(cause)
  }
}

/** Explanations of system errors for operators. */
const meanings: Readonly<Record<string, string>> = {
  ENOSPC: 'its disk has no space or no inode left',
  EDQUOT: 'its quota is used up',
  EROFS: 'its disk is read-only',
  EACCES: 'the service has no right to it',
  EPERM: 'the service has no right to it',
  EMFILE: 'the service has too many files open',
  ENFILE: 'the machine has too many files open',
  EIO: 'its disk fails',
  ENOTDIR: 'a part of its path is no folder',
}

/** An error of a folder or a store, with a sentence that names it. */
export function unavailable(what: string, cause: unknown): PartUnavailable {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return new PartUnavailable(`${what} cannot be used: ${meanings[code] ?? 'it answers with an error'}`, cause)
}
