import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onPath } from './on-path.ts'

/** A certificate of this machine's loopback addresses that signs itself, and its key: paths, and what they hold. */
export interface TestCertificate {
  certPath: string
  keyPath: string
  cert: string
  key: string
  remove(): void
}

const EC = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'
const LOOPBACK = '-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1'

export const makeCertificate = (): TestCertificate => make(mkdtempSync(join(tmpdir(), 'larder-certificate-')))

/** The same, signed by an authority of its own, whose certificate is at `authorityPath`. */
export function makeCertificateOfAuthority(): TestCertificate & { authorityPath: string } {
  const folder = mkdtempSync(join(tmpdir(), 'larder-certificate-'))
  const [authorityPath, authorityKey] = [join(folder, 'authority.pem'), join(folder, 'authority-key.pem')]
  openssl(`${EC} -subj /CN=authority`, '-keyout', authorityKey, '-out', authorityPath)
  return { ...make(folder, '-CA', authorityPath, '-CAkey', authorityKey), authorityPath }
}

function make(folder: string, ...signer: string[]): TestCertificate {
  const [certPath, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  openssl(`${EC} ${LOOPBACK}`, '-keyout', keyPath, '-out', certPath, ...signer)
  const [cert, key] = [certPath, keyPath].map((path) => readFileSync(path, 'utf8')) as [string, string]
  return { certPath, keyPath, cert, key, remove: () => rmSync(folder, { recursive: true }) }
}

const openssl = (words: string, ...paths: string[]): void =>
  void execFileSync(onPath('openssl')!, [...words.split(' '), ...paths], { stdio: 'ignore' })
