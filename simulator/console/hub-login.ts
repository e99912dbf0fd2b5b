import { encodeQR } from 'qr'

/** The login of a technician's telephone at the hub's own page. */
export interface HubLogin {
  /** The page's address with the token after `#`, which browsers do not send. */
  link: string
  /** The link as a QR code: each text is a row of modules, `1` is dark. */
  code: string[]
}

export function hubLogin(url: string, token: string): HubLogin {
  const link = `${url.replace(/\/$/, '')}/#token=${encodeURIComponent(token)}`
  const modules = encodeQR(link, 'raw', { border: 2 })
  return { link, code: modules.map((row) => row.map((isDark) => (isDark ? '1' : '0')).join('')) }
}
