import * as files from 'node:fs'
import ssh2 from 'ssh2'
import { fingerprintOf } from '../../protocol/management/ssh.ts'
import { newKey } from '../../protocol/management/new-key.ts'
import { keepSecret } from '../../protocol/model/kept-secret.ts'

export interface HostKey {
  /** In OpenSSH's format. */
  privateKey: string
  /** As in a line of `known_hosts`, after the host. */
  publicKey: string
  fingerprint: string
}

/**
 * The host key in the file at `path`, readable only by its owner. If there is none, it is created. The key is
 * the hub's identity. If it is lost, an operator must pin the new key, and until then the cloud does not
 * connect. Calls `say` if an empty file is replaced. Throws if the file is not a key, or if others may read
 * it.
 */
export function keptHostKey(path: string, say: (sentence: string) => void): HostKey {
  const privateKey = keepSecret(files, path, newKey('larder hub').privateKey, say)
  const others = files.statSync(path).mode & 0o077
  if (others !== 0) throw new Error(`HOST_KEY: others may read ${path}: chmod 600 it, or make a new one`)
  const key = ssh2.utils.parseKey(privateKey)
  if (key instanceof Error) throw new Error(`HOST_KEY: ${path} is no private key (${key.message})`)
  if (!key.isPrivateKey()) throw new Error(`HOST_KEY: ${path} is no private key`)
  const wire = key.getPublicSSH()
  return { privateKey, publicKey: `${key.type} ${wire.toString('base64')}`, fingerprint: fingerprintOf(wire) }
}
