import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onPath } from './on-path.ts'

/** A self-signed certificate of this machine's loopback addresses, and its key: paths and contents. */
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

/** A certificate signed by its own authority, with the authority's certificate at `authorityPath`. */
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

/** Days from now, possibly fractional; negative: before now. */
export interface Validity {
  fromDay: number
  toDay: number
}

/** An authority whose certificates have the names and dates of a test. */
export interface TestAuthority {
  /** PEM of the authority's own certificate. */
  ca: string
  caPath: string
  issue(
    name: string,
    names: string,
    validity: Validity,
    usage?: string,
  ): { cert: string; key: string; certPath: string }
  remove(): void
}

/** An authority with a given validity. */
export function makeAuthority(
  validity: Validity,
  extensions = 'basicConstraints=critical,CA:true',
): TestAuthority {
  const folder = mkdtempSync(join(tmpdir(), 'larder-authority-'))
  const at = (name: string): string => join(folder, name)
  const date = (days: number): string =>
    new Date(Date.now() + days * 86_400_000)
      .toISOString()
      .replaceAll(/[-:T]|\.\d+/g, '')
      .slice(2)
  writeFileSync(at('index'), '')
  writeFileSync(at('index.attr'), 'unique_subject = no\n')
  let serial = 0x1000
  const sign = (name: string, words: string, { fromDay, toDay }: Validity, extra: string): void => {
    serial += 1
    writeFileSync(at('serial'), `${serial.toString(16)}\n`)
    writeFileSync(
      at('conf'),
      `[ca]\ndefault_ca=d\n[d]\ndatabase=${at('index')}\nserial=${at('serial')}\nnew_certs_dir=${folder}\ndefault_md=sha256\npolicy=p\nx509_extensions=e\n[p]\ncommonName=supplied\n[e]\n${extra}\n`,
    )
    const paths = ['-config', at('conf'), '-in', at(`${name}.csr`), '-out', at(`${name}.pem`), '-notext']
    openssl(`ca -batch ${words} -startdate ${date(fromDay)} -enddate ${date(toDay)}`, ...paths)
  }
  const request = (name: string, subject: string): void =>
    openssl(
      `req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=${subject}`,
      '-keyout',
      at(`${name}.key`),
      '-out',
      at(`${name}.csr`),
    )
  request('ca', 'authority')
  sign('ca', `-selfsign -keyfile ${at('ca.key')}`, validity, extensions)
  return {
    ca: readFileSync(at('ca.pem'), 'utf8'),
    caPath: at('ca.pem'),
    issue(name, names, dates, usage = 'serverAuth') {
      request(name, name)
      const words = `-keyfile ${at('ca.key')} -cert ${at('ca.pem')}`
      sign(name, words, dates, `subjectAltName=${names}\nextendedKeyUsage=${usage}`)
      const [cert, key] = [`${name}.pem`, `${name}.key`].map((file) => readFileSync(at(file), 'utf8'))
      return { cert: cert!, key: key!, certPath: at(`${name}.pem`) }
    },
    remove: () => rmSync(folder, { recursive: true }),
  }
}
