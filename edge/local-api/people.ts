import { isPinOf, isSameName } from '../../protocol/model/pin.ts'
import type { PersonAtHub } from '../../protocol/mqtt/cloud-entries.ts'
import { digestOf, isSameDigest } from './token.ts'

/** The holder of a credential. */
export interface Access {
  /** Digest of the shared token, or of the person's stored PIN: a changed PIN is another credential. */
  credential: string
  /** Null for the shared token. */
  person: string | null
}

/** Access to the hub's page: by the shared token (`LOCAL_TOKEN`), or by a person's name and PIN. */
export class LocalAccess {
  readonly #shared: string
  readonly #people: () => readonly PersonAtHub[]

  constructor({ token, people }: { token: string; people: () => readonly PersonAtHub[] }) {
    this.#shared = digestOf(token)
    this.#people = people
  }

  /** The access of the shared token; undefined if the token is wrong. */
  ofToken(token: string): Access | undefined {
    const credential = digestOf(token)
    return isSameDigest(credential, this.#shared) ? { credential, person: null } : undefined
  }

  /** The access of a person; undefined if there is no such person, or if the PIN is wrong. */
  async ofPin(name: string, pin: string): Promise<Access | undefined> {
    const person = this.#people().find((one) => isSameName(one.name, name))
    // An unknown name costs as much time as a wrong PIN.
    const isRight = await isPinOf(person?.pin_digest ?? `${'0'.repeat(32)}.`, pin)
    return person && isRight ? accessOf(person) : undefined
  }

  /** Whether the credential of a session is still valid. */
  isValid(credential: string): boolean {
    return (
      isSameDigest(credential, this.#shared) ||
      this.#people().some((person) => isSameDigest(accessOf(person).credential, credential))
    )
  }
}

const accessOf = ({ name, pin_digest: digest }: PersonAtHub): Access => ({
  credential: digestOf(digest),
  person: name,
})
