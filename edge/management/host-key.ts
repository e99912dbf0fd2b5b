import * as files from 'node:fs'
import ssh2 from 'ssh2'
import { fingerprintOf } from '../../protocol/management/ssh.ts'
import { newKey } from '../../protocol/management/new-key.ts'
import { keepSecret } from '../../protocol/model/kept-secret.ts'

export interface HostKey {
  /** In OpenSSH's format. */
  privateKey: string
  /** As a line of `known_hosts` has it behind the host. */
  publicKey: string
  fingerprint: string
}

/**
 * The host key in the file at `path`, for its owner's eyes only; made there where there is none yet. It is the hub's
 * identity: where it is lost, an operator must pin the new one, and until then the cloud does not speak to it. `say` is told
 * where an empty file is replaced. Throws where the file is no such key, or others may read it.
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
