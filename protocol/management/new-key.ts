import ssh2 from 'ssh2'

/** A new Ed25519 key: the private part in OpenSSH's format, the public one as a line of `authorized_keys`. */
export function newKey(comment: string): { privateKey: string; publicKey: string } {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync('ed25519', { comment })
    // One key in 256 begins with a zero, which the library drops. The key that it then writes is invalid.
    const parsed = [pair.private, pair.public].map((text) => ssh2.utils.parseKey(text))
    if (!parsed.some((key) => key instanceof Error))
      return { privateKey: pair.private, publicKey: pair.public }
  }
}
