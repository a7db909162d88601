"""What is proved about a learned model: against every other linear model, and on rows to come.

``evidence`` holds the exact certificate of any predictions, ``bounds`` the papers' theorems, ``risk`` what one pass
over independent rows says about the next one.
"""

from tunefree.certificate.bounds import log_phi, paper_bound, pistol_bound, scinol1_bound, scinol2_bound
from tunefree.certificate.evidence import Certificate, Evidence, best_lower_bound, certify, widened
from tunefree.certificate.risk import Progressive

__all__ = [
    "Certificate",
    "Evidence",
    "Progressive",
    "best_lower_bound",
    "certify",
    "log_phi",
    "paper_bound",
    "pistol_bound",
    "scinol1_bound",
    "scinol2_bound",
    "widened",
]
