import { createHmac, hkdfSync } from 'node:crypto'
import { join } from 'node:path'
import type { Random } from '../../../protocol/model/runtime.ts'
import { keptRandom, type Say } from '../settings/kept-file.ts'
import { decrypt, encrypt } from './cipher.ts'

/** What the service has to read again and nobody else may: each purpose has a key of its own. */
export type Purpose = 'client secret' | 'push token' | 'customer mark' | 'payer network'

/**
 * Seals texts that the database keeps for the service alone. Whoever reads the database, or a backup of it, reads none of
 * them: the secret of the seal is not in there.
 */
export interface Sealer {
  seal(purpose: Purpose, text: string): string
  /** Throws for what was sealed by another secret, or for another purpose. */
  open(purpose: Purpose, sealed: string): string
  /** A keyed digest, hexadecimal: the same for the same text, and of no use to anybody without the secret. */
  digest(purpose: Purpose, text: string): string
}

/** A sealer with keys from the inner secret (`open-sealer.ts`). */
export function createSealer(secret: string, random: Random): Sealer {
  const keys = new Map<Purpose, Buffer>()
  function keyOf(purpose: Purpose): Buffer {
    const key = keys.get(purpose) ?? Buffer.from(hkdfSync('sha256', secret, '', `larder ${purpose}`, 32))
    keys.set(purpose, key)
    return key
  }
  return {
    digest: (purpose, text) => createHmac('sha256', keyOf(purpose)).update(text).digest('hex'),
    seal: (purpose, text) => encrypt(keyOf(purpose), text, random),
    open(purpose, sealed) {
      try {
        return decrypt(keyOf(purpose), sealed)
      } catch (cause) {
        throw new Error(
          `STORE_SECRET: a ${purpose} in the database was sealed by another secret, or changed since`,
          { cause },
        )
      }
    },
  }
}

/** Of a program that has no business with what is sealed: it need not know the secret. */
export const noSealer: Sealer = { seal: refuse, open: refuse, digest: refuse }

function refuse(): never {
  throw new Error('this program neither seals nor opens secrets')
}

/** The secret of the seal from a file in a folder; makes it if there is none. */
export const keptStoreSecret = (folder: string, random: Random, say: Say): string =>
  keptRandom(join(folder, 'store-secret'), random, say)
