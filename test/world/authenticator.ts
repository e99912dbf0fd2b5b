import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest()
const text = (bytes: Buffer): string => bytes.toString('base64url')

/** User present and verified (WebAuthn §6.1). */
const PRESENT_AND_VERIFIED = 0x05
const WITH_CREDENTIAL = 0x40

/** A person's authenticator (WebAuthn, ES256): it answers for any page, also for one that deceives the person. */
export class Authenticator {
  readonly id = text(randomBytes(16))
  readonly #key: { privateKey: KeyObject; publicKey: KeyObject } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
  })
  #counter = 0

  register({ challenge }: { challenge: string }, origin: string): object {
    const id = Buffer.from(this.id, 'base64url')
    const { x, y } = this.#key.publicKey.export({ format: 'jwk' }) as { x: string; y: string }
    // CBOR: {1: 2, 3: -7, -1: 1, -2: x, -3: y}
    const cose = Buffer.concat([
      Buffer.from('a5010203262001215820', 'hex'),
      Buffer.from(x, 'base64url'),
      Buffer.from('225820', 'hex'),
      Buffer.from(y, 'base64url'),
    ])
    const data = Buffer.concat([
      this.#data(origin, PRESENT_AND_VERIFIED | WITH_CREDENTIAL),
      Buffer.alloc(16),
      Buffer.from([0, id.length]),
      id,
      cose,
    ])
    // CBOR: {fmt: 'none', attStmt: {}, authData: data}
    const attestation = Buffer.concat([
      Buffer.from('a363666d74646e6f6e656761747453746d74a068617574684461746158', 'hex'),
      Buffer.from([data.length]),
      data,
    ])
    return this.#answer({
      clientDataJSON: text(clientData('webauthn.create', challenge, origin)),
      attestationObject: text(attestation),
    })
  }

  signIn({ challenge }: { challenge: string }, origin: string): object {
    const data = this.#data(origin, PRESENT_AND_VERIFIED)
    const client = clientData('webauthn.get', challenge, origin)
    const signature = sign('sha256', Buffer.concat([data, sha256(client)]), this.#key.privateKey)
    return this.#answer({
      clientDataJSON: text(client),
      authenticatorData: text(data),
      signature: text(signature),
    })
  }

  #data(origin: string, flags: number): Buffer {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(++this.#counter)
    return Buffer.concat([sha256(new URL(origin).hostname), Buffer.from([flags]), counter])
  }

  #answer(response: object): object {
    return { id: this.id, rawId: this.id, type: 'public-key', clientExtensionResults: {}, response }
  }
}

const clientData = (type: string, challenge: string, origin: string): Buffer =>
  Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }))
