import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import ssh2 from 'ssh2'
import { fingerprintOf } from '../../protocol/management/ssh.ts'
import { newKey } from '../../protocol/management/new-key.ts'

export interface HostKey {
  /** In OpenSSH's format. */
  privateKey: string
  /** As a line of `known_hosts` has it behind the host. */
  publicKey: string
  fingerprint: string
}

/**
 * The host key in the file at `path`, for its owner's eyes only; made there where there is none yet. It is the hub's
 * identity: where it is lost, an operator must pin the new one. Throws where the file is not such a key, or others may
 * read it.
 */
export function keptHostKey(path: string): HostKey {
  mkdirSync(dirname(path), { recursive: true })
  if (!existsSync(path)) makeOnce(path)
  const others = statSync(path).mode & 0o077
  if (others !== 0) throw new Error(`HOST_KEY: others may read ${path}: chmod 600 it, or make a new one`)
  const privateKey = readFileSync(path, 'utf8')
  const key = ssh2.utils.parseKey(privateKey)
  if (key instanceof Error) throw new Error(`HOST_KEY: ${path} is no private key (${key.message})`)
  if (!key.isPrivateKey()) throw new Error(`HOST_KEY: ${path} is no private key`)
  const wire = key.getPublicSSH()
  return { privateKey, publicKey: `${key.type} ${wire.toString('base64')}`, fingerprint: fingerprintOf(wire) }
}

/** The whole file appears at one instant, or the one that is there by then stays. */
function makeOnce(path: string): void {
  const draft = `${path}.${process.pid}.new`
  const file = openSync(draft, 'w', 0o600)
  try {
    writeSync(file, newKey('larder hub').privateKey)
    fsyncSync(file)
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    closeSync(file)
    rmSync(draft)
  }
}
