import { generateKeyPairSync } from 'node:crypto'
import ssh2, { type ParsedKey } from 'ssh2'
import { describe, expect, test } from 'vitest'
import {
  authorize,
  parseAuthorizedKeys,
  type PublicKeyAttempt,
} from '../../../edge/management/authorized-keys.ts'
import { newKey } from '../../../protocol/management/new-key.ts'

const { generateKeyPairSync: generate } = ssh2.utils
const rsa = (bits: number) => generate('rsa', { bits })
/** The library is not used: some of its keys of this type cannot be read back. */
function ed25519() {
  const { privateKey, publicKey } = newKey('')
  return { private: privateKey, public: publicKey.split(' ').slice(0, 2).join(' ') }
}
const pairs = {
  ed25519: ed25519(),
  ecdsa: generate('ecdsa', { bits: 256 }),
  rsa: rsa(2048),
}
const privateOf = (text: string): ParsedKey => {
  const key = ssh2.utils.parseKey(text)
  if (key instanceof Error) throw key
  return key
}

describe('the file of authorized keys', () => {
  test('keys of accepted types are read with their comments, and blank lines and comments are ignored', () => {
    const text = [
      '# people',
      '',
      `  ${pairs.ed25519.public} ada at home\r`,
      pairs.ecdsa.public,
      `\t${pairs.rsa.public}`,
    ]
    const { keys, problems } = parseAuthorizedKeys(text.join('\n'))
    expect(problems).toEqual([])
    expect(keys.map(({ key }) => key.type)).toEqual(['ssh-ed25519', 'ecdsa-sha2-nistp256', 'ssh-rsa'])
    expect(keys[0]!.comment).toBe('ada at home')
  })

  test.each([
    { what: 'a short RSA key', line: rsa(1024).public, why: /1024 bits/ },
    { what: 'options', line: `command="id" ${pairs.ed25519.public}`, why: /with options/ },
    { what: 'a restriction', line: `restrict ${pairs.ed25519.public}`, why: /with options/ },
    { what: 'a DSA key', line: `ssh-dss ${pairs.ed25519.public.split(' ')[1]}`, why: /not a key of a type/ },
    {
      what: 'a type that differs from the key',
      line: `ssh-rsa ${pairs.ed25519.public.split(' ')[1]}`,
      why: /./,
    },
    { what: 'no key', line: 'ssh-ed25519 AAAA', why: /./ },
    { what: 'a type without a key', line: 'ssh-ed25519', why: /./ },
    {
      what: 'a certificate',
      line: `ssh-ed25519-cert-v01@openssh.com ${pairs.ed25519.public.split(' ')[1]}`,
      why: /not a key of a type/,
    },
  ])('the entry with $what authorizes no key, and is reported by its line', ({ line, why }) => {
    const { keys, problems } = parseAuthorizedKeys(`# one\n${line}\n`)
    expect(keys).toEqual([])
    expect(problems).toEqual([expect.stringMatching(/^line 2: /)])
    expect(problems[0]).toMatch(why)
  })

  test('a private key in the file authorizes no key', () => {
    const { keys, problems } = parseAuthorizedKeys(pairs.ed25519.private)
    expect(keys).toEqual([])
    expect(problems.length).toBeGreaterThan(0)
  })
})

describe('an attempt to log in', () => {
  const { keys } = parseAuthorizedKeys(
    [pairs.ed25519, pairs.ecdsa, pairs.rsa].map((pair) => pair.public).join('\n'),
  )
  const blob = Buffer.from('session, user and key')
  const attemptOf = (own: ParsedKey, hashAlgo?: string): PublicKeyAttempt => ({
    key: { algo: own.type, data: own.getPublicSSH() },
    signature: own.sign(blob, hashAlgo),
    blob,
    hashAlgo,
  })

  test.each([
    ['ed25519', undefined],
    ['ecdsa', undefined],
    ['rsa', 'sha256'],
    ['rsa', 'sha512'],
  ] as const)('a valid signature by %s (algorithm: %s) is accepted', (name, hash) => {
    const own = privateOf(pairs[name].private)
    expect(authorize(keys, attemptOf(own, hash))?.key.type).toBe(own.type)
  })

  test('an RSA signature over SHA-1 is refused', () => {
    const own = privateOf(pairs.rsa.private)
    expect(authorize(keys, attemptOf(own))).toBeUndefined()
    expect(authorize(keys, { ...attemptOf(own), hashAlgo: 'sha1' })).toBeUndefined()
  })

  test('a key that is not in the file is refused, with or without a signature', () => {
    const stranger = privateOf(ed25519().private)
    const attempt = attemptOf(stranger)
    expect(authorize(keys, attempt)).toBeUndefined()
    expect(authorize(keys, { key: attempt.key })).toBeUndefined()
    expect(authorize([], attemptOf(privateOf(pairs.ed25519.private)))).toBeUndefined()
  })

  test('an authorized key with another key’s signature, or a signature over other data, is refused', () => {
    const own = privateOf(pairs.ed25519.private)
    const good = attemptOf(own)
    const stranger = privateOf(ed25519().private)
    expect(authorize(keys, { ...good, signature: stranger.sign(blob) })).toBeUndefined()
    expect(authorize(keys, { ...good, blob: Buffer.from('another session') })).toBeUndefined()
    expect(authorize(keys, { ...good, signature: Buffer.alloc(64) })).toBeUndefined()
    expect(authorize(keys, { ...good, signature: Buffer.alloc(0) })).toBeUndefined()
    expect(authorize(keys, { ...good, blob: undefined })).toBeUndefined()
    expect(authorize(keys, { ...good, key: { ...good.key, algo: 'ssh-rsa' } })).toBeUndefined()
  })

  test('the query for an acceptable key is answered with yes for authorized keys', () => {
    const { key } = attemptOf(privateOf(pairs.ecdsa.private))
    expect(authorize(keys, { key })?.key.type).toBe('ecdsa-sha2-nistp256')
  })

  test('another encoding of a key’s text is another key', () => {
    const { publicKey } = generateKeyPairSync('ed25519')
    const data = publicKey.export({ format: 'der', type: 'spki' })
    expect(authorize(keys, { key: { algo: 'ssh-ed25519', data } })).toBeUndefined()
  })
})
