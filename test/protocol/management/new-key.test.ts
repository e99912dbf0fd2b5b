import { randomBytes } from 'node:crypto'
import ssh2 from 'ssh2'
import { expect, test } from 'vitest'
import { FINGERPRINT, fingerprintOf } from '../../../protocol/management/ssh.ts'
import { newKey } from '../../../protocol/management/new-key.ts'

test('every new key can be read again, can sign, and its two halves match', () => {
  // One in 256 keys of the library cannot be read back.
  for (let count = 0; count < 1000; count++) {
    const pair = newKey('a test')
    const [own, open] = [ssh2.utils.parseKey(pair.privateKey), ssh2.utils.parseKey(pair.publicKey)]
    if (own instanceof Error || open instanceof Error) throw new Error(pair.publicKey)
    expect(own.isPrivateKey()).toBe(true)
    const words = randomBytes(20)
    expect(open.verify(words, own.sign(words))).toBe(true)
    expect(fingerprintOf(open.getPublicSSH())).toMatch(FINGERPRINT)
  }
})
