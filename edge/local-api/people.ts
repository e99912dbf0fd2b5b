import { z } from 'zod'
import { digestOf, isSameDigest } from './token.ts'

/** A person with their own token, as in the file `<STORE>.people`. */
export const Person = z.object({
  name: z.string().min(1).max(60),
  /** SHA-256 of the token, hexadecimal. */
  digest: z.string(),
  created_at: z.string(),
  /** Null: no end. */
  expires_at: z.string().nullable(),
})
export type Person = z.infer<typeof Person>

/** Parses the file's text. Throws if the text is not such a list. */
export const parsePeople = (text: string): Person[] => z.array(Person).parse(JSON.parse(text))

/** The holder of a token. `credential` is the digest of the token. */
export interface Access {
  credential: string
  /** Null for the shared token. */
  person: string | null
}

/** Access to the hub's page: by the shared token (`LOCAL_TOKEN`), or by personal tokens. */
export class LocalAccess {
  readonly #shared: string
  readonly #people: () => readonly Person[]
  readonly #now: () => number

  constructor({ token, people, now }: { token: string; people: () => readonly Person[]; now: () => number }) {
    this.#shared = digestOf(token)
    this.#people = people
    this.#now = now
  }

  /** The holder of a token; undefined if the token is wrong, removed or expired. */
  of(token: string): Access | undefined {
    return this.ofCredential(digestOf(token))
  }

  /** The holder of the token with a digest. */
  ofCredential(credential: string): Access | undefined {
    if (isSameDigest(credential, this.#shared)) return { credential, person: null }
    const now = this.#now()
    const found = this.#people().find(({ digest }) => isSameDigest(digest, credential))
    if (found === undefined || (found.expires_at !== null && Date.parse(found.expires_at) <= now))
      return undefined
    return { credential, person: found.name }
  }
}
