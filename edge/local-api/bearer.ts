import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Whether an `Authorization` header carries the token. Takes the same time whatever is wrong with it. */
export function bearerCheck(token: string): (header: string | undefined) => boolean {
  const expected = digest(token)
  return (header) => {
    const given = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]
    return timingSafeEqual(digest(given ?? ''), expected) && given !== undefined
  }
}
