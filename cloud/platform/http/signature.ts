import { createHmac, timingSafeEqual } from 'node:crypto'

/** The parts of a signature header, `t=<unix seconds>,v1=<hex>`. */
const signatureParts = (header: string | undefined): [name: string, value: string | undefined][] =>
  (header ?? '').split(',').map((part) => {
    const [name = '', value] = part.trim().split('=')
    return [name, value]
  })

/** The time of a signature header in seconds since the Unix epoch. Undefined if it is absent or too far from now. */
export function signatureTime(
  header: string | undefined,
  { nowMs, toleranceMs }: { nowMs: number; toleranceMs: number },
): number | undefined {
  const text = signatureParts(header).find(([name]) => name === 't')?.[1] ?? ''
  const seconds = /^\d{1,15}$/.test(text) ? Number(text) : NaN
  return Math.abs(nowMs - seconds * 1000) <= toleranceMs ? seconds : undefined
}

/** `t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`. `nowMs` since the Unix epoch. */
export function signPayload(body: string, secret: string, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000)
  return `t=${seconds},v1=${digest(body, secret, seconds).toString('hex')}`
}

/**
 * Whether a header is a valid signature of this body with this secret (or one of several), at most
 * `toleranceMs` away from now.
 */
export function isSigned(
  body: string,
  header: string | undefined,
  terms: { secret: string | readonly string[]; nowMs: number; toleranceMs: number },
): boolean {
  const seconds = signatureTime(header, terms)
  if (seconds === undefined) return false
  const secrets = typeof terms.secret === 'string' ? [terms.secret] : terms.secret
  const expected = secrets.map((secret) => digest(body, secret, seconds))
  return signatureParts(header).some(([name, value]) => {
    const given = Buffer.from(value ?? '', 'hex')
    return (
      name === 'v1' && expected.some((each) => given.length === each.length && timingSafeEqual(given, each))
    )
  })
}

const digest = (body: string, secret: string, seconds: number): Buffer =>
  createHmac('sha256', secret).update(`${seconds}.${body}`).digest()
