import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import ssh2 from 'ssh2'
import { newKey } from '../../protocol/management/new-key.ts'

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

/** The same, made where there is none. Of processes that do so at once, the first one's key stays. */
export function keptClientKey(path: string): ClientKey {
  if (!existsSync(path)) makeOnce(path)
  return readClientKey(path)
}

function makeOnce(path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}.new`
  writeFileSync(draft, newKey('larder-cloud').privateKey, { mode: 0o600 })
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft)
  }
}
