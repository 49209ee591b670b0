/** Why the certificate of a server that Parley calls is refused, and what to do about it. */

interface CertificateFault {
  /** As the end of a sentence. */
  readonly found: string
  /** As the beginning of one. */
  readonly todo: string
}

/** The server that was called. */
interface CertificateOwner {
  /** The variable that names it. */
  readonly variable: string
  /** Where it has its certificate. */
  readonly where: string
  /** How Parley gets to know an authority, as the end of a sentence. */
  readonly trust: string
}

/** By Node's code; where a driver has dropped the code, by OpenSSL's words. */
const kinds = [
  [/^CERT_HAS_EXPIRED$/, /certificate has expired/i, 'expired'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, /altnames/i, 'misnamed'],
  [/^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN)$/, /self[- ]signed certificate/i, 'self-signed'],
  [/^UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?)$/, /unable to (verify|get)/i, 'unknown'],
] as const

/** Undefined if the connection failed for another reason. */
export function findCertificateFault(
  error: unknown,
  { variable, where, trust }: CertificateOwner,
): CertificateFault | undefined {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  const kind = kinds.find(([codes, words]) => codes.test(String(code)) || words.test(String(message)))?.[2]
  switch (kind) {
    case undefined:
      return undefined
    case 'expired':
      return { found: "the server's certificate has expired", todo: `Renew it ${where}.` }
    case 'misnamed':
      return {
        found: "the server's certificate is for another host name",
        todo: `Use the name that it is for in ${variable}, or give the server a certificate for this one.`,
      }
    case 'self-signed':
      return {
        found: "the server's certificate is self-signed, or its authority is",
        todo: `If that is intended, ${trust}.`,
      }
    case 'unknown':
      return {
        found: "the server's certificate cannot be verified",
        todo: `Let the server send the certificates up to its authority; if the authority is your own, ${trust}.`,
      }
  }
}
