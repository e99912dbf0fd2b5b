import { isPinOf, isSameName, noPinDigest } from '../../protocol/model/pin.ts'
import type { PersonAtHub } from '../../protocol/mqtt/cloud-entries.ts'
import { digestOf, isSameDigest } from './token.ts'

/** The holder of a credential. */
export interface Access {
  /** Digest of the shared token, or of the person's stored PIN: a changed PIN is another credential. */
  credential: string
  /** Null for the shared token. */
  person: string | null
}

/** Number of PINs that wait for their check, of all networks and of one; further ones are refused. */
const PINS_WAITING = 32
const PINS_WAITING_PER_NETWORK = 4

/** Access to the hub's page: by the shared token (`LOCAL_TOKEN`), or by a person's name and PIN. */
export class LocalAccess {
  readonly #shared: string
  readonly #people: () => readonly PersonAtHub[]
  /** Networks of the PINs that wait. */
  readonly #waiting: string[] = []
  #lastCheck: Promise<unknown> = Promise.resolve()

  constructor({ token, people }: { token: string; people: () => readonly PersonAtHub[] }) {
    this.#shared = digestOf(token)
    this.#people = people
  }

  /** The access of the shared token; undefined if the token is wrong. */
  ofToken(token: string): Access | undefined {
    const credential = digestOf(token)
    return isSameDigest(credential, this.#shared) ? { credential, person: null } : undefined
  }

  /** Whether too many PINs wait for their check, of all networks or of this one. */
  isBusy(network: string): boolean {
    const own = this.#waiting.filter((each) => each === network).length
    return own >= PINS_WAITING_PER_NETWORK || this.#waiting.length >= PINS_WAITING
  }

  /**
   * The access of a person; undefined if there is no such person, or if the PIN is wrong. One PIN is checked at a time:
   * the serial lines are read on the same few threads.
   */
  async ofPin(network: string, name: string, pin: string): Promise<Access | undefined> {
    this.#waiting.push(network)
    const check = this.#lastCheck.then(() => this.#checkPin(name, pin))
    this.#lastCheck = check.catch(() => {})
    try {
      return await check
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(network), 1)
    }
  }

  async #checkPin(name: string, pin: string): Promise<Access | undefined> {
    const person = this.#people().find((one) => isSameName(one.name, name))
    // An unknown name costs as much time as a wrong PIN.
    const isRight = await isPinOf(person?.pin_digest ?? noPinDigest, pin)
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
