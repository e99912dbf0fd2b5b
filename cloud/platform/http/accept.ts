/** Whether an `Accept` prefers a media type to JSON (RFC 9110 §12.5.1). Without a preference the answer is JSON. */
export function prefersType(accept: string | undefined, type: string): boolean {
  const ranges = (accept ?? '').split(',').map(readRange)
  const [own, json] = [weigh(ranges, type), weigh(ranges, 'application/json')]
  if (own.weight !== json.weight) return own.weight > json.weight
  return own.weight > 0 && own.exactness === 2 && (json.exactness < 2 || own.index < json.index)
}

interface Range {
  name: string
  weight: number
}

function readRange(text: string): Range {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.split('=')[1]
  return { name, weight: weight === undefined ? 1 : Number(weight) || 0 }
}

/** The weight of a type by the most exact range: its name, `text/*`, or any type. */
function weigh(ranges: readonly Range[], type: string) {
  const names = ['*/*', `${type.split('/')[0]}/*`, type]
  for (const exactness of [2, 1, 0]) {
    const index = ranges.findIndex(({ name }) => name === names[exactness])
    if (index >= 0) return { weight: ranges[index]!.weight, exactness, index }
  }
  return { weight: 0, exactness: -1, index: -1 }
}
