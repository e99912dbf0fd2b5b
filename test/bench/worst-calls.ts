import { z } from 'zod'
import { mountsOf, type Route } from '../../protocol/contract/route.ts'
import { routes } from '../../protocol/contract/routes.ts'

/** A request that needs as much work as a caller can cause. */
export interface WorstCall {
  route: string
  how: string
  path: string
  method: Route['method']
  auth: Route['auth']['kind']
  /** The bytes are created when they are sent: all of them together are a gigabyte. */
  body?: { type: string; bytes: () => Uint8Array } | undefined
}

/** Ids for paths: a customer with a full cart, and the demo's owner. */
export type KnownIds = Readonly<Record<string, string>>

const MIB = 1024 * 1024
/** Maximum length of an address, so that the names of headers still fit. */
const QUERY_BYTES = 12_000
const IMAGE_BYTES = 5_000_000

/**
 * Requests of every route of the table: with a query of very many names, long lists and long texts, and with
 * bodies of 1 MiB.
 */
export function worstCalls(ids: KnownIds): WorstCall[] {
  return Object.entries<Route>(routes).flatMap(([id, route]) =>
    route.produces === 'text/event-stream' || route.path === '/diag/logs/stream'
      ? []
      : callsOf(id, route, ids),
  )
}

function callsOf(id: string, route: Route, ids: KnownIds): WorstCall[] {
  const make = (how: string, query: string, body?: WorstCall['body']): WorstCall => ({
    route: `${route.method} ${route.path}`,
    how,
    path: `${pathOf(route, ids)}${query === '' ? '' : `?${query}`}`,
    method: route.method,
    auth: route.auth.kind,
    body,
  })
  const plain = queryOf(route, ids)
  const ordinary = bodyOf(route, ids)
  const json = (text: () => string): WorstCall['body'] => ({
    type: 'application/json',
    bytes: () => new TextEncoder().encode(text().slice(0, MIB)),
  })
  const sent = ordinary === undefined ? undefined : json(() => JSON.stringify(ordinary))
  return [
    make('as it is meant', plain, sent),
    make('very many names', `${plain}&${repeated((n) => `_${n.toString(36)}`, '&')}`, sent),
    ...queriesOf(route, plain).map(([how, query]) => make(how, query, sent)),
    ...(route.method === 'GET' || route.method === 'DELETE' || route.form
      ? []
      : bodiesOf(route, ordinary)
    ).map(([how, text]) => make(how, plain, json(text))),
    ...(route.form ? formsOf(route).map(([how, body]) => make(how, plain, body)) : []),
    ...(byHand[id]?.(ids) ?? []).map(([how, body]) =>
      make(
        how,
        plain,
        json(() => JSON.stringify(body)),
      ),
    ),
  ]
}

const pathOf = (route: Route, ids: KnownIds): string =>
  mountsOf(route)[0]!.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? '1')

/** The required parameters, and the largest page. */
function queryOf(route: Route, ids: KnownIds): string {
  const fields = Object.entries(route.query?.shape ?? {}) as [string, z.ZodType][]
  return fields
    .flatMap(([name, field]) => {
      if (['limit', 'size', 'per_page'].includes(name)) return [`${name}=100`]
      return field.safeParse(undefined).success ? [] : [`${name}=${encodeURIComponent(ids[name] ?? '1')}`]
    })
    .join('&')
}

/** Texts that a search splits into words, folds, and uses in patterns. */
const texts = ['a b c d e f g h i j k l m n o p q r s t u v w x y z ', '%_!', 'ﷺ', '\u0300', 'ẞ']

function queriesOf(route: Route, plain: string): [string, string][] {
  return Object.entries(route.query?.shape ?? {}).flatMap(([name, field]) => {
    const schema = JSON.stringify(z.toJSONSchema(field as z.ZodType, { io: 'input', unrepresentable: 'any' }))
    if (schema.includes('"array"'))
      return [['a long list', `${plain}&${repeated(() => `${name}=x`, '&')}`] as [string, string]]
    if (!schema.includes('"string"')) return []
    return texts.map((text): [string, string] => {
      const most = Number(/"maxLength":(\d+)/.exec(schema)?.[1] ?? 200)
      const long = text.repeat(Math.ceil(most / text.length)).slice(0, most)
      const rest = plain.split('&').filter((part) => !part.startsWith(`${name}=`))
      return [
        `a long ${name}`,
        [...rest, `${name}=${encodeURIComponent(long).slice(0, QUERY_BYTES)}`].join('&'),
      ]
    })
  })
}

function repeated(part: (n: number) => string, separator: string, bytes = QUERY_BYTES): string {
  const parts: string[] = []
  for (let length = 0, n = 0; length < bytes; n += 1) {
    parts.push(part(n))
    length += parts.at(-1)!.length + 1
  }
  return parts.join(separator)
}

/** A valid body. */
function bodyOf(route: Route, ids: KnownIds): Record<string, unknown> | undefined {
  if (!route.body) return undefined
  const example = route.examples?.body
  const given = typeof example === 'object' && example !== null ? (example as Record<string, unknown>) : {}
  const numbers = Object.entries(ids).map(([name, text]): [string, number] => [name, Number(text)])
  const known = Object.fromEntries(numbers.filter(([name]) => name in given))
  return { ...given, ...known }
}

function bodiesOf(route: Route, ordinary: Record<string, unknown> | undefined): [string, () => string][] {
  const shape = (route.body?.shape ?? {}) as Record<string, z.ZodType>
  const within = (name: string, text: string): string => {
    const { [name]: _, ...rest } = ordinary ?? {}
    return `${JSON.stringify(rest).slice(0, -1)}${Object.keys(rest).length > 0 ? ',' : ''}"${name}":${text}}`
  }
  const fields = (bytes: number): string => `{${repeated((n) => `"${n.toString(36)}":1`, ',', bytes)}}`
  const list = (item: string): string => `[${repeated(() => item, ',', MIB - 30_000)}]`
  return [
    ['lists 500,000 deep', () => '['.repeat(MIB / 2 - 1) + ']'.repeat(MIB / 2 - 1)],
    ['very many fields', () => fields(MIB - 30_000)],
    ...Object.keys(shape).flatMap((name): [string, () => string][] => [
      [`${name} of spaces and signs`, () => within(name, `"${' _.-@'.repeat((MIB - 4096) / 5)}"`)],
      [`${name} a list of objects`, () => within(name, list('{}'))],
      [`${name} a list of numbers`, () => within(name, list('1'))],
      [`${name} of many fields`, () => within(name, fields(MIB - 60_000))],
    ]),
  ]
}

const BOUNDARY = 'larder-costs'

interface Part {
  name: string
  fileName?: string
  content: Uint8Array | string
}

function formOf(parts: () => readonly Part[]): NonNullable<WorstCall['body']> {
  const pieces = () =>
    parts().flatMap(({ name, fileName, content }) => [
      Buffer.from(
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${fileName === undefined ? '' : `; filename="${fileName}"`}\r\n\r\n`,
      ),
      Buffer.from(content as string),
      Buffer.from('\r\n'),
    ])
  return {
    type: `multipart/form-data; boundary=${BOUNDARY}`,
    bytes: () => Buffer.concat([...pieces(), Buffer.from(`--${BOUNDARY}--\r\n`)]),
  }
}

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
const many = (part: string, bytes = IMAGE_BYTES): Buffer =>
  latin1(part.repeat(Math.floor(bytes / part.length)))
const JPEG = latin1('\xff\xd8\xff\xe0\0\x04\x01\x01\xff\xc0\0\x0b\x08\0\x08\0\x10\x01\x01\x11\0')
const GIF = latin1('GIF89a\x01\0\x01\0\0\0\0')
const PNG = latin1('\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x08\0\0\0\x04\x08\x02\0\0\0\0\0\0\0')
const WEBP = latin1('RIFF\xff\xff\xff\x7fWEBPVP8X\x0a\0\0\0\0\0\0\0\x07\0\0\x07\0\0')
const MP4 = latin1('\0\0\0\x10ftypisom\0\0\x02\0')

/** Pictures and videos with a structure that needs much work. */
const pictures: Readonly<Record<string, () => Buffer>> = {
  'a JPEG, its scan of FF': () => Buffer.concat([JPEG, latin1('\xff\xda\0\x02'), many('\xff')]),
  'a JPEG, its scan of stuffed bytes': () => Buffer.concat([JPEG, latin1('\xff\xda\0\x02'), many('\xff\0')]),
  'a JPEG of fill bytes': () => Buffer.concat([JPEG, many('\xff')]),
  'a JPEG of empty segments': () => Buffer.concat([JPEG, many('\xff\xe1\0\x02')]),
  'a GIF of empty blocks': () => Buffer.concat([GIF, many('\x21\xf9\0')]),
  'a GIF of sub-blocks of a byte': () => Buffer.concat([GIF, latin1('\x21\xfe'), many('\x01x')]),
  'a PNG of empty texts': () => Buffer.concat([PNG, many('\0\0\0\0tEXt\0\0\0\0')]),
  'a WebP of empty chunks': () => Buffer.concat([WEBP, many('EXIF\0\0\0\0')]),
}
const videos: Readonly<Record<string, () => Buffer>> = {
  'an MP4 of empty boxes': () => Buffer.concat([MP4, many('\0\0\0\x08free')]),
  'an MP4 of boxes in boxes': () => Buffer.concat([MP4, many('\0\x40\0\0moov', 80_000)]),
}

function formsOf({ form }: Route): [string, NonNullable<WorstCall['body']>][] {
  const [file] = Object.keys(form!.files)
  const takesVideos = Object.values(form!.files).some(({ videoBytes }) => videoBytes !== undefined)
  const made = { ...pictures, ...(takesVideos && videos) }
  const [text] = Object.keys(form!.fields.shape)
  return [
    ...Object.entries(made).map(([how, content]): [string, NonNullable<WorstCall['body']>] => [
      how,
      formOf(() => [{ name: file!, fileName: 'a', content: content() }]),
    ]),
    ['many parts', formOf(() => Array.from({ length: 2000 }, (_, n) => ({ name: `p${n}`, content: 'x' })))],
    ...(text === undefined
      ? []
      : [
          [
            `${text} of lists 500,000 deep`,
            formOf(() => [{ name: text, content: '['.repeat(MIB - 4096) }]),
          ] as [string, NonNullable<WorstCall['body']>],
        ]),
  ]
}

/** As many lines as a preview allows, of products and categories with deals. */
const cart = (ids: KnownIds) => ({
  hub_id: Number(ids['hub_id']),
  user_id: Number(ids['user_id']),
  cart_items: Array.from({ length: 100 }, (_, n) => ({
    product_id: 1 + (n % 60),
    category_id: 1 + (n % 8),
    quantity: 1000,
    unit_price: 100 + n,
  })),
})

const byHand: Readonly<Record<string, (ids: KnownIds) => [string, object][]>> = {
  'owner.deals.check_eligibility': (ids) => [
    ['100 lines, 100 deals', { ...cart(ids), cart_total: 10_000_000 }],
  ],
  'owner.deals.apply_reward': (ids) => [
    ['100 lines, 50 deals', { ...cart(ids), deal_ids: Array.from({ length: 50 }, (_, n) => n + 1) }],
  ],
}
