import { loadX509, P256, type Key } from '../../protocol/x509.ts'

/** A certificate request (PKCS #10, PEM) for a new key of an algorithm of WebCrypto. Its name does not matter. */
export async function certificateRequest(
  algorithm: Parameters<typeof crypto.subtle.generateKey>[0] = P256,
): Promise<string> {
  const { Pkcs10CertificateRequestGenerator } = await loadX509()
  const keys = (await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as {
    publicKey: Key
    privateKey: Key
  }
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: 'CN=any name',
    keys,
    signingAlgorithm: algorithm as typeof P256,
  })
  return request.toString('pem')
}
