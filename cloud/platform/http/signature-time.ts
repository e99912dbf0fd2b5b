/** The parts of a signature header, `t=<unix seconds>,v1=<hex>`. */
export const signatureParts = (header: string | undefined): [name: string, value: string | undefined][] =>
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
