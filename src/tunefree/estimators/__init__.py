"""The interface of scikit-learn: estimators that validate and delegate; :mod:`tunefree` names the public ones."""
