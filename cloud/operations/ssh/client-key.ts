import { readFileSync } from 'node:fs'
import ssh2 from 'ssh2'
import { newKey } from '../../../protocol/management/new-key.ts'
import { keepFirst, readKept } from '../../platform/settings/kept-file.ts'

export interface ClientKey {
  /** In OpenSSH's format. */
  privateKey: string
  /** As a line of `authorized_keys`. */
  publicKey: string
}

/** The cloud's key in the file at `path`; throws where it is missing or none. */
export function readClientKey(path: string): ClientKey {
  const privateKey = readFileSync(path, 'utf8')
  const key = ssh2.utils.parseKey(privateKey)
  if (key instanceof Error) throw new Error(`${path} is no private key (${key.message})`)
  if (!key.isPrivateKey()) throw new Error(`${path} is no private key`)
  const wire = key.getPublicSSH().toString('base64')
  return { privateKey, publicKey: `${key.type} ${wire} larder-cloud` }
}

/** The same, made where there is none. */
export function keptClientKey(path: string): ClientKey {
  if (readKept(path) === undefined) keepFirst(path, newKey('larder-cloud').privateKey)
  return readClientKey(path)
}
